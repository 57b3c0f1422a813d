package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// The ways of asking a limiter for permits of one key until load ends.
const (
	saturated way = "as fast as they can"
	half      way = "half as fast as they can"
)

// The callers of LOAD.md.
const (
	many = 256
	most = 4096
)

var (
	atMostSpeed = cell{saturated, 1, many, false}
	atHalf      = cell{half, 1, many, false}
	crowd       = cell{saturated, 1, most, false}
)

// ends measures LOAD.md. Unlike in the other comparisons of limiters, neap has its default
// budget, so that a call that takes longer fails.
func (s *server) ends(ctx context.Context, r *results) error {
	defaults := func(direct bool) contestant {
		c := contestant{name: bucketName, kind: ours, what: "token bucket, with the default budget of 50 ms"}
		if direct {
			c.name, c.what, c.client = directName, "the same without the queue", unqueued
		}
		c.limiter = neapAsIs(limit.Options{Budget: r.plan.budget}, bucket)
		return c
	}
	r.contestants = []contestant{floors()[0], defaults(false), defaults(true)}
	return s.measure(ctx, r, r.contestants, []cell{atMostSpeed, atHalf, crowd}, func(c contestant, e *env) (slicer, error) {
		take, err := c.limiter(ctx, e, hotKey)
		if err == nil {
			_, err = take(ctx, subject) // loads the script
		}
		saturates := 0.0 // calls a second
		return func(ctx context.Context, at cell, length time.Duration) (figures, error) {
			p := &paced{take: take, isFloor: c.kind == floor, callers: make([]caller, at.goroutines)}
			if at.way == half && saturates > 0 {
				p.pause = time.Duration(float64(at.goroutines) / (saturates / 2) * float64(time.Second))
			}
			f, err := s.slice(ctx, load{goroutines: at.goroutines, length: length, call: p.call, mayFail: true})
			if err != nil {
				return nil, err
			}
			if at == atMostSpeed {
				saturates = f[rate]
			}
			p.figures(f)
			return f, nil
		}, err
	})
}

// paced are callers that ask at a pace.
type paced struct {
	take    take
	isFloor bool
	pause   time.Duration // between two calls of a caller, on average; 0 for none
	callers []caller
}

type caller struct {
	next  time.Time
	waits []float64 // in milliseconds
}

func (p *paced) call(ctx context.Context, i int) error {
	c := &p.callers[i]
	if p.pause > 0 {
		if c.next.IsZero() {
			c.next = time.Now().Add(rand.N(p.pause))
		}
		time.Sleep(time.Until(c.next))
		if c.next = c.next.Add(p.pause/2 + rand.N(p.pause)); time.Until(c.next) < 0 { // what was missed is not made up for
			c.next = time.Now()
		}
	}
	asked := time.Now()
	allowed, err := p.take(ctx, subject)
	c.waits = append(c.waits, float64(time.Since(asked))/float64(time.Millisecond))
	return check(allowed, err, admitted, p.isFloor)
}

func (p *paced) figures(f figures) {
	var all []float64
	for _, c := range p.callers {
		all = append(all, c.waits...)
	}
	slices.Sort(all)
	f[p50], f[p99] = quantile(all, 0.5), quantile(all, 0.99)
}

// targetDecision is of 99 % of the decisions at half of what saturates, in milliseconds.
const targetDecision = 1

// endsReport is LOAD.md.
func endsReport(r *results) report {
	of := func(m metric, at cell) func(string) any { return func(name string) any { return r.of(m, name, at) } }
	return report{
		title: "Where load ends",
		prose: fmt.Sprintf(`
This page tells how long a decision takes under load, all for one hot key: with %d callers that ask as fast as they can,
with as many that ask half as fast, and with %d callers.

`, many, most) + r.inRounds() + `Redis and all callers share the processors of one machine. A call fails if neap's default budget of 50 ms is not enough.`,
		sections: []section{
			targets([]target{
				{"99 % of the decisions of " + strconv.Itoa(many) + " callers at half speed are within", r.of(p99, bucketName, atHalf), "%.2f", " ms", atMost, targetDecision},
				{strconv.Itoa(most) + " callers: decisions a second", r.manyToMost(), "%.2f", fmt.Sprintf(" of those of %d", many), atLeast, 1},
				{strconv.Itoa(most) + " callers: failed", r.of(failed, bucketName, crowd), "%.0f", "", atMost, 0},
			}),
			table("Decisions of one hot key", namesOf(r.contestants), []column{
				{fmt.Sprintf("%d callers: a second", many), "%.0f", of(rate, atMostSpeed)},
				{"99 %, ms", "%.2f", of(p99, atMostSpeed)},
				{"at half speed: a second", "%.0f", of(rate, atHalf)},
				{"median, ms", "%.2f", of(p50, atHalf)},
				{"99 %, ms", "%.2f", of(p99, atHalf)},
				{fmt.Sprintf("%d callers: a second", most), "%.0f", of(rate, crowd)},
				{"99 %, ms", "%.1f", of(p99, crowd)},
				{"failed", "%.0f", of(failed, crowd)},
			}, ""),
			r.who(""),
		},
	}
}

// manyToMost is by how much the rate grows from many callers to most.
func (r *results) manyToMost() spread {
	var ratios []float64
	for i, f := range r.measured[crowd][bucketName] {
		ratios = append(ratios, f[rate]/r.measured[atMostSpeed][bucketName][i][rate])
	}
	return spreadOf(ratios, func(v float64) float64 { return v })
}
