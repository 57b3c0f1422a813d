package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// way is what the contestants are asked for.
type way string

// cell is one way of asking all contestants. A dimension that a report does not have
// is zero.
type cell struct {
	way        way
	keys       int
	goroutines int  // 0 stands for all numbers of them
	away       bool // the server is at a distance
}

// text leaves out what is zero.
func (c cell) text() string {
	text := string(c.way)
	switch {
	case c.goroutines == 1:
		text = "1 goroutine, " + text
	case c.goroutines > 1:
		text = fmt.Sprintf("%d goroutines, %s", c.goroutines, text)
	}
	if c.away {
		text = fmt.Sprintf("%v away, %s", distance, text)
	}
	if c.keys > 0 {
		text = keysText(c.keys) + ", " + text
	}
	return text
}

// cells are all ways by all numbers of goroutines.
func (p plan) cells(keys int, ways ...way) []cell {
	var all []cell
	for _, n := range p.goroutines {
		for _, w := range ways {
			all = append(all, cell{w, keys, n, false})
		}
	}
	return all
}

// slicer measures one slice of a contestant that was started.
type slicer func(ctx context.Context, at cell, length time.Duration) (figures, error)

// measure starts each contestant on a database of its own, and then measures all cells
// in each round. A short round before them opens connections and loads scripts.
func (s *server) measure(
	ctx context.Context, r *results, group []contestant, cells []cell, start func(contestant, *env) (slicer, error),
) (err error) {
	var opened scope
	defer opened.close(&err)
	started := make([]slicer, len(group))
	for db, c := range group {
		r.tellf("%s starts", c.name)
		e, err := s.env(&opened, c.client, db)
		if err == nil {
			started[db], err = start(c, e)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for n := range r.plan.rounds + 1 {
		for _, at := range cells {
			r.tellf("round %d of %d: %s", n, r.plan.rounds, at.text())
			length := r.plan.slice
			if n == 0 {
				length /= 10
			}
			one, err := round(ctx, group, started, at, length)
			if err != nil {
				return fmt.Errorf("%s: %w", at.text(), err)
			}
			if n > 0 {
				r.add(at, one)
			}
		}
	}
	return nil
}

// floorEvery is how many contestants come between two slices of the floor.
const floorEvery = 4

// round measures each contestant once, in shuffled order. The first of them is the floor.
// It is measured again and again in between, and counts by its medians.
func round(
	ctx context.Context, group []contestant, started []slicer, at cell, length time.Duration,
) (map[string]figures, error) {
	var others []int
	for i, c := range group {
		if i > 0 && at.goroutines >= c.minGoroutines {
			others = append(others, i)
		}
	}
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	order := []int{0}
	for some := range slices.Chunk(others, floorEvery) {
		order = append(append(order, some...), 0)
	}
	measured := map[string][]figures{}
	for _, i := range order {
		f, err := started[i](ctx, at, length)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", group[i].name, err)
		}
		measured[group[i].name] = append(measured[group[i].name], f)
	}
	one := map[string]figures{}
	for name, all := range measured {
		one[name] = figures{}
		for m := range all[0] {
			one[name][m] = spreadOf(all, func(f figures) float64 { return f[m] }).median
		}
	}
	return one, nil
}
