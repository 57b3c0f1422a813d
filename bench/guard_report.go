package main

import (
	"fmt"
	"slices"
)

// The targets that the project set itself for a guard.
const (
	targetReplay = 1.3    // GETs of the same bytes
	targetKept   = 1433.6 // 1.4 KB, of an answer of 1 KB
)

// guardReport is GUARD.md.
func guardReport(r *results) report {
	return report{
		title: "neap's guard beside others",
		prose: `
This page compares neap's idempotency guard with the least that a guard must ask Redis, and with Fiber's own middleware.

A first request has a key that was never used. A replay has the key of a request that was done before. The answer has
1 KB.

` + r.inRounds() + `Ratios are to the first line of the table, in the same round. If a handler runs more or less often than
it must, the run ends with an error.`,
		sections: []section{
			targets(r.guardTargets()),
			r.kept(direct, ""),
			r.kept(overHTTP, `
Redis CPU is that of the whole server (INFO cpu), with one caller. Commands are those that the client sends and waits
for. Bytes are MEMORY USAGE of one answered request, including its key.`),
			r.promised(),
			r.who(""),
		},
	}
}

func (r *results) guardTargets() []target {
	costs := target{format: "%.2f", unit: " GETs of the same bytes", direction: atMost, bound: targetReplay}
	script := target{format: "%.2f", unit: costs.unit, direction: noTarget}
	times := target{format: "%.2f", unit: " times as many as Fiber's own middleware", direction: noTarget}
	return slices.Concat(r.trips(neapGuard, "request"), []target{{
		fmt.Sprintf("memory that an answer of %d bytes takes", len(answer)), exactly(r.facts[neapGuard].bytes),
		"%.0f", " bytes", atMost, targetKept,
	}}, r.cellTargets("at once",
		cellTarget{"what a replay costs", rate, replayed, guardGET, neapGuard, costs},
		cellTarget{"what a script costs that only calls GET", rate, replayed, guardGET, guardByLua, script},
		cellTarget{"first requests that neap serves behind Fiber", rate, first, neapFiber, fibersOwn, times},
		cellTarget{"replays that neap serves behind Fiber", rate, replayed, neapFiber, fibersOwn, times},
	))
}

// promised has a row for each promise, and a column for each middleware.
func (r *results) promised() section {
	var texts []string
	for _, p := range promises {
		texts = append(texts, p.text)
	}
	var columns []column
	for _, c := range r.contestants {
		if outcomes := r.facts[c.name].promises; outcomes != nil {
			columns = append(columns, column{c.name, "%s", func(text string) any { return outcomes[slices.Index(texts, text)] }})
		}
	}
	return table("What they promise, tried over HTTP in this run", texts, columns, "")
}

// cost is a figure of a request.
type cost struct {
	head, format string
	figure       func(name string, at cell) any
}

func (r *results) cost(head, format string, m metric) cost {
	return cost{head, format, func(name string, at cell) any { return r.of(m, name, at).middle() }}
}

// requestTable has the rates of a group beside its floor, the costs of a request by the
// fewest goroutines, and further columns.
func (r *results) requestTable(group, callers, after string, costs []cost, more ...column) section {
	var names []string
	for _, c := range r.contestants {
		if c.group == group {
			names = append(names, c.name)
		}
	}
	var columns []column
	for _, at := range r.cells {
		head := fmt.Sprintf("%s a second, %d %s", at.way, at.goroutines, callers)
		columns = append(columns,
			column{head, "%.0f", func(name string) any { return r.of(rate, name, at) }},
			column{"ratio", "%.2f", func(name string) any { return r.ratio(rate, name, names[0], at) }})
	}
	costs = slices.Insert(costs, 0, cost{"commands", "%.3g", func(name string, at cell) any {
		return r.facts[name].sends[at.way].count
	}})
	for _, c := range costs {
		head := c.head + ", "
		for _, at := range r.cells {
			if at.goroutines == r.plan.goroutines[0] {
				figure := func(name string) any { return c.figure(name, at) }
				columns = append(columns, column{head + string(at.way), c.format, figure})
				head = ""
			}
		}
	}
	return table(group, names, append(columns, more...), after)
}

// kept is the table of what a request sends and keeps.
func (r *results) kept(group, after string) section {
	return r.requestTable(group, "at once", after, []cost{r.cost("Redis CPU, µs", "%.0f", serverCPU)},
		column{"bytes", "%.0f", func(name string) any {
			if f := r.facts[name]; f.bytes > 0 {
				return f.bytes
			}
			return nil
		}})
}

// trips are the targets of a first request, and of one that is replayed.
func (r *results) trips(name, what string) []target {
	of := func(at way) spread { return exactly(r.facts[name].sends[at].count) }
	return []target{
		{"round trips of a first " + what, of(first), "%.3g", "", exact, 2},
		{"round trips of a replayed " + what, of(replayed), "%.3g", "", exact, 1},
	}
}
