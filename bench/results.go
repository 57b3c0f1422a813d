package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// results are all that one report describes.
type results struct {
	plan        plan
	host        string
	when        time.Time
	progress    io.Writer
	contestants []contestant
	facts       map[string]facts              // of each contestant
	cells       []cell                        // as they were measured
	measured    map[cell]map[string][]figures // of each contestant, one a round
}

// facts are what a contestant sends and keeps, however fast it is.
type facts struct {
	sends       map[way]sent
	keys, bytes float64 // of one subject or request; 0 where they end too soon to be seen
	limiter     limiterFacts
	promises    []string // of middleware: what came of each that was tried
}

func (s *server) results(ctx context.Context, b benchmark, p plan, progress io.Writer) (*results, error) {
	p.slice *= time.Duration(b.slices)
	p.goroutines = b.goroutines
	host, err := s.host(ctx)
	if err != nil {
		return nil, err
	}
	r := &results{
		plan: p, host: host, when: time.Now(), progress: progress,
		facts: map[string]facts{}, measured: map[cell]map[string][]figures{},
	}
	return r, b.measure(s, ctx, r)
}

func (r *results) tellf(format string, values ...any) {
	fmt.Fprintf(r.progress, "%4.0f s  %s\n", time.Since(r.when).Seconds(), fmt.Sprintf(format, values...))
}

// add is one more round of a cell.
func (r *results) add(at cell, round map[string]figures) {
	if r.measured[at] == nil {
		r.measured[at] = map[string][]figures{}
		r.cells = append(r.cells, at)
	}
	for name, f := range round {
		r.measured[at][name] = append(r.measured[at][name], f)
	}
}

// of is the spread of one figure over the rounds of a cell.
func (r *results) of(m metric, name string, at cell) spread {
	return r.beside(m, name, name, at, func(own, _ float64) float64 { return own })
}

// ratio is of a contestant's figure to that of another in the same round.
func (r *results) ratio(m metric, name, base string, at cell) spread {
	return r.beside(m, name, base, at, func(own, other float64) float64 { return own / other })
}

func (r *results) beside(m metric, name, base string, at cell, compare func(own, other float64) float64) spread {
	var values []float64
	for _, c := range r.cells {
		if c.way != at.way || c.keys != at.keys || c.away != at.away || at.goroutines > 0 && c.goroutines != at.goroutines {
			continue
		}
		for i, f := range r.measured[c][name] {
			values = append(values, compare(f[m], r.measured[c][base][i][m]))
		}
	}
	return spreadOf(values, func(v float64) float64 { return v })
}

// spread is what the rounds came to.
type spread struct {
	median, low, high float64 // low and high are the quartiles
	rounds            int
}

func spreadOf[T any](all []T, figure func(T) float64) spread {
	if len(all) == 0 {
		return spread{}
	}
	sorted := make([]float64, len(all))
	for i, one := range all {
		sorted[i] = figure(one)
	}
	slices.Sort(sorted)
	return spread{quantile(sorted, 0.5), quantile(sorted, 0.25), quantile(sorted, 0.75), len(sorted)}
}

// exactly is a figure that does not vary.
func exactly(n float64) spread { return spread{n, n, n, 1} }

// quantile lies between the two nearest of the sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(at)
	if below == len(sorted)-1 {
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

// above says whether two spreads do not overlap, with s the larger: noise decides
// nothing.
func (s spread) above(other spread) bool {
	return s.rounds > 0 && other.rounds > 0 && s.median > other.median && s.low > other.high
}
