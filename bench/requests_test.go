package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// Each way to break a guard: it does another thing than its name says.
var broken = map[string]func(g *guard){
	"a first request of a key that was used": func(g *guard) {
		key, first := newKey(), g.first
		g.first = func(ctx context.Context, _ string) error { return first(ctx, key) }
	},
	"a replay of a key that was never used": func(g *guard) {
		replay := g.replay
		g.replay = func(ctx context.Context, _ string) error { return replay(ctx, newKey()) }
	},
}

// Each way to break a sale.
var brokenSales = map[string]func(g *guard){
	"it refuses what there is": func(g *guard) {
		first, calls := g.first, 0
		g.first = func(ctx context.Context, key string) error {
			if calls++; calls > 2*known {
				_ = g.replay(ctx, key)
				return nil
			}
			return first(ctx, key)
		}
	},
	"it sells what there is not": func(g *guard) {
		g.replay = func(ctx context.Context, _ string) error { return g.first(ctx, newKey()) }
	},
}

var brokenLimits = map[string]func(g *guard){
	"it denies what is below the limit": brokenSales["it refuses what there is"],
	"it admits what is above the limit": brokenSales["it sells what there is not"],
}

func TestBrokenContestantsEndTheRun(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		ways   []way
		all    []contestant
		breaks map[string]func(*guard)
	}{
		{[]way{first, replayed}, slices.Concat(guards(), fiberGuards(), callbacks()), broken},
		{[]way{sold, refused}, sales(), brokenSales},
		{[]way{admitted, denied}, servedLimits(), brokenLimits},
	} {
		for _, c := range of.all {
			if c.name == guardScript {
				continue // it keeps nothing, so nothing of it can be broken
			}
			for what, breaks := range of.breaks {
				t.Run(c.name+"/"+what, func(t *testing.T) {
					t.Parallel()
					one := c
					one.middleware = nil
					one.guard = func(ctx context.Context, e *env) (*guard, error) {
						g, err := c.guard(ctx, e)
						if err != nil {
							return nil, err
						}
						if g.unlocked {
							g.unlocked = false // every request passes, so that alone can be broken
						} else {
							breaks(g)
						}
						return g, nil
					}
					measure := requests(of.ways, func() []contestant { return []contestant{one} })
					if _, err := resultsOf(t, benchmark{goroutines: []int{1}, measure: measure}); !errors.Is(err, errWrong) {
						t.Errorf("the run ended with %v, want %v", err, errWrong)
					}
				})
			}
		}
	}
}

// oneRound measures a report for a moment, sets the figures, and checks its tables.
func oneRound(
	t *testing.T, name string, goroutines []int, counts map[string][2]float64,
) (*results, func(*results) report) {
	t.Helper()
	b := benchmarks[slices.IndexFunc(benchmarks, func(b benchmark) bool { return b.name == name })]
	b.goroutines = goroutines
	r, err := resultsOf(t, b)
	if err != nil {
		t.Fatal(err)
	}
	page := text(t, b.report, r)
	for _, c := range r.contestants {
		if strings.Count(page, "| "+c.name+" |") < 2 {
			t.Errorf("%s is not in every table", c.name)
		}
		got := [2]float64{r.facts[c.name].sends[r.cells[0].way].count, r.facts[c.name].sends[r.cells[1].way].count}
		if want, ok := counts[c.name]; ok && got != want {
			t.Errorf("%s sends %v commands, want %v", c.name, got, want)
		}
	}
	return r, b.report
}

// steady has a contestant do the same in two rounds: a rate for the first way of asking, and one
// for the second.
func (r *results) steady(name string, rates ...float64) {
	for i, at := range r.cells {
		f := figures{rate: rates[i%len(rates)], totalCPU: 10}
		r.measured[at][name] = []figures{f, f}
	}
}

func TestTheGuardsReport(t *testing.T) {
	t.Parallel()
	r, report := oneRound(t, "guard", []int{1, 16}, map[string][2]float64{
		guardGET: {2, 1}, guardScript: {2, 1}, neapGuard: {2, 1}, neapFiber: {2, 1}, fibersOwn: {3, 1}, bareFiber: {0, 0},
	})
	for _, c := range r.contestants {
		if bytes := r.facts[c.name].bytes; (bytes > 1024) != (c.name != bareFiber && c.name != guardScript) {
			t.Errorf("%s keeps %.0f bytes", c.name, bytes)
		}
		r.steady(c.name, 1000, 2000)
		if c.kind == ours {
			r.steady(c.name, 2000, 4000)
		}
	}
	has(t, text(t, report, r), map[string]string{
		"- round trips of a first request":            ": 2, target 2: met",
		"- memory that an answer of 1024 bytes takes": ", target at most 1434: met",
		"- what a replay costs, 1 at once":            "0.50 (0.50–0.50) GETs of the same bytes, target at most 1.30: met",
		"- first requests that neap serves behind":    "2.00 (2.00–2.00) times as many",
	})
	const twice = " | **runs 2 times**; the "
	has(t, text(t, report, r), map[string]string{
		"| " + promises[0].text + twice + "second is answered 201 |": " runs once; the second is answered 409 |",
		"| " + promises[1].text + " |":                               " **the first's answer** (201) | 422 |",
		"| " + promises[2].text + " |":                               " **the first's answer** (201) | 201 |",
		"| " + promises[3].text + " |":                               " yes | no |",
		"| " + promises[4].text + twice + "first is answered 500 |":  " runs once; the first is answered 201 |",
	})
	r.steady(neapGuard, 1)
	r.facts[neapGuard] = facts{sends: map[way]sent{first: {count: 3}}, bytes: 1434}
	has(t, text(t, report, r), map[string]string{
		"- what a replay costs, 1 at":                 "**not met**",
		"- memory that an answer of 1024 bytes takes": "**not met**",
		"- round trips of a first request":            "**not met**",
	})
}

func TestTheCallbacksReport(t *testing.T) {
	t.Parallel()
	r, report := oneRound(t, "callbacks", []int{1, 16}, map[string][2]float64{neapCallback: {2, 1}, bareCallback: {0, 0}})
	if r.facts[neapCallback].bytes == 0 || r.facts[bareCallback].bytes != 0 {
		t.Errorf("they keep %+v", r.facts)
	}
	r.steady(bareCallback, 4000, 2000)
	r.steady(neapCallback, 1000, 500)
	has(t, text(t, report, r), map[string]string{
		"- round trips of a replayed delivery": "1, target 1: met",
		"- first deliveries, 1 at once":        "1000 (1000–1000) a second, target at least 1000: met",
		"- replayed deliveries, 16 at once":    "500 (500–500) a second, target at least 1000: **not met**",
	})
}

func TestTheSalesReport(t *testing.T) {
	t.Parallel()
	r, report := oneRound(t, "stock", []int{2, 3}, map[string][2]float64{
		saleByDECR: {1, 1}, saleByLua: {1, 1}, saleAtOnce: {1, 1}, saleConfirmed: {2, 1}, saleAlone: {0, 0},
	})
	rates := map[string]float64{saleByDECR: 1000, saleByLua: 950, saleAtOnce: 800, saleConfirmed: 500, saleAlone: 1}
	for _, c := range r.contestants {
		if in := r.of(commandCPU, c.name, r.cells[0]).median; in < 0 || in > 0 && c.name == saleAlone { // Redis counts whole microseconds, so it may be 0
			t.Errorf("%s: %v microseconds in commands", c.name, in)
		}
		r.steady(c.name, rates[c.name], 900)
	}
	r.measured[r.cells[0]][saleAtOnce][0][totalCPU], r.measured[r.cells[0]][saleAtOnce][1][totalCPU] = 20, 20
	has(t, text(t, report, r), map[string]string{
		"- sold at once, 2":                       "0.80 (0.80–0.80) of the throughput behind DECR, target at least 0.80: met",
		"- a script that only calls DECR, 2":      "0.95",
		"- reserved and confirmed, 3 connections": "0.50 (0.50–0.50)",
		"- refused, since it is sold out, 2":      "1.00",
		"- CPU of Redis and the process":          "0.50 (0.50–0.50) of what a sale at once takes",
	})
	r.steady(saleAtOnce, 790, 900)
	has(t, text(t, report, r), map[string]string{"- sold at once, 3 connections": "**not met**"})
}
