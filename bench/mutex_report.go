package main

import (
	"fmt"
	"strings"
)

// The targets that the project set itself for a hand-over in one process.
const (
	targetHeld  = 0.9
	targetWait  = 10.0 // milliseconds, of 99 % of the waits
	targetLeast = 0.7  // of a worker's fair share
	targetBest  = 1.3
	targetTrips = 2
)

// report is LOCKS.md.
func (r *lockResults) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# neap's locks beside others

Written by %[1]smake bench-peers%[1]s on %[2]s: %[3]s. Every sentence and figure below is computed from that run.

Each contestant was measured in %[4]d rounds of %[5]s, in shuffled order; a figure is the median of the rounds, with its
quartiles in brackets. A run in which two have the lock at once ends with an error.

`, "`", r.when.UTC().Format("2 January 2006"), r.host, r.rounds, r.slice)
	r.targets(&b)
	r.handOvers(&b, fmt.Sprintf("Hand-over: %d goroutines of one process, one lock, %v hold, %v think time", workers, hold, think), r.together)
	r.handOvers(&b, fmt.Sprintf("The same between processes: %d clients, a goroutine each", workers), r.apart)
	b.WriteString("Held is the share of the time in which somebody had the lock. A worker's share is in fair shares, of the worst and of the\n" +
		"best. Redis CPU is that of the whole server (INFO cpu), idle time's work included.\n\n")
	r.uncontended(&b)
	var rows [][]string
	for _, c := range r.all {
		what := c.what
		if c.module != "" {
			what += fmt.Sprintf(" (%s %s)", strings.TrimPrefix(c.module, "github.com/"), version(c.module))
		}
		rows = append(rows, []string{c.name, what})
	}
	table(&b, "Who", []string{"", "what it is"}, rows)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (r *lockResults) handOvers(b *strings.Builder, title string, of map[string][]tenure) {
	var rows [][]string
	for _, c := range r.all {
		all := of[c.name]
		row := []string{c.name}
		for _, column := range []struct {
			format string
			figure func(tenure) float64
		}{
			{"%.0f %%", func(t tenure) float64 { return 100 * t.held }},
			{"%.0f", func(t tenure) float64 { return t.rate }},
			{"%.1f", func(t tenure) float64 { return t.p50 }},
			{"%.1f", func(t tenure) float64 { return t.p99 }},
			{"%.1f", func(t tenure) float64 { return t.most }},
			{"%.2f", func(t tenure) float64 { return t.least }},
			{"%.2f", func(t tenure) float64 { return t.best }},
			{"%.0f", func(t tenure) float64 { return t.cpu }},
			{"%.0f", func(t tenure) float64 { return float64(t.failed) }},
		} {
			s := over(all, column.figure)
			row = append(row, fmt.Sprintf(column.format+" ("+column.format+"–"+column.format+")", s.median, s.low, s.high))
		}
		rows = append(rows, row)
	}
	table(b, title, []string{
		"", "held", "a second", "wait, median, ms", "99 %, ms", "longest, ms", "smallest share", "largest", "Redis CPU a hand-over, µs", "failed",
	}, rows)
}

func (r *lockResults) uncontended(b *strings.Builder) {
	head := []string{"", "round trips"}
	for _, n := range crowds {
		head = append(head, fmt.Sprintf("a second, %d at once", n))
	}
	var rows [][]string
	for _, c := range r.all {
		row := []string{c.name, fmt.Sprintf("%.3g", r.trips(c.name))}
		for _, n := range crowds {
			s := r.pairs(c.name, n)
			row = append(row, fmt.Sprintf("%.0f (%.0f–%.0f)", s.median, s.low, s.high))
		}
		rows = append(rows, row)
	}
	table(b, "Uncontended: acquire and release, each goroutine its own key", head, rows)
}

func (r *lockResults) targets(b *strings.Builder) {
	mine, polls := r.together[neapLock], r.together[pollName]
	held := over(mine, func(t tenure) float64 { return t.held }).median
	wait := over(mine, func(t tenure) float64 { return t.p99 }).median
	least := over(mine, func(t tenure) float64 { return t.least }).median
	best := over(mine, func(t tenure) float64 { return t.best }).median
	cpu := over(mine, func(t tenure) float64 { return t.cpu }).median
	most := over(polls, func(t tenure) float64 { return t.cpu }).median
	fmt.Fprintf(b, `## What neap set itself

- held %.1f %% of the time, to be at least %.0f %%: %s; the bound has %.1f %%
- 99 %% of the waits within %.1f ms, to be at most %.0f ms: %s
- every worker's share from %.2f to %.2f of a fair one, to be within %.1f to %.1f: %s
- Redis CPU a hand-over %.0f µs, to be at most the %.0f µs of the poll: %s
- round trips of acquire and release %.3g, to be %d: %s
`, 100*held, 100*targetHeld, holds(held >= targetHeld), 100*over(r.together[boundName], func(t tenure) float64 { return t.held }).median,
		wait, targetWait, holds(wait <= targetWait),
		least, best, targetLeast, targetBest, holds(least >= targetLeast && best <= targetBest),
		cpu, most, holds(cpu <= most), r.trips(neapLock), targetTrips, holds(r.trips(neapLock) <= targetTrips))
	for _, name := range []string{redsyncIs, bslName} {
		for _, n := range crowds {
			own, other := r.pairs(neapLock, n), r.pairs(name, n)
			fmt.Fprintf(b, "- acquire and release, %d at once: %.2f times as many as %s, to be at least as many: %s\n",
				n, own.median/other.median, name, holds(own.median >= other.median))
		}
	}
	b.WriteString("\n")
}

func (r *lockResults) trips(name string) float64 {
	return over(r.alone[name], func(p pairs) float64 { return p.trips }).median
}

func (r *lockResults) pairs(name string, goroutines int) spread {
	return over(r.alone[name], func(p pairs) float64 { return p.rate[goroutines] })
}

// over is the spread of one figure over rounds.
func over[T any](rounds []T, figure func(T) float64) spread {
	values := make([]float64, len(rounds))
	for i, one := range rounds {
		values[i] = figure(one)
	}
	return spreadOf(values)
}
