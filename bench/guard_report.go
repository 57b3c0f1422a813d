package main

import (
	"fmt"
	"strconv"
	"strings"
)

// The targets that the project set itself for a guard.
const (
	targetReplay = 1.3    // GETs of the same bytes
	targetKept   = 1433.6 // 1.4 KB, of an answer of 1 KB
	targetFirst  = 2      // round trips
)

// report is GUARD.md.
func (r *guardResults) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# neap's guard beside others

Written by %[1]smake bench-peers%[1]s on %[2]s: %[3]s. Every sentence and figure below is computed from that run.

A first request is one whose key was never used, and a replay one that was done before; the answer has 1 KB. Each
contestant was measured in %[4]d rounds of %[5]s, in shuffled order; a figure is the median of the rounds, with its
quartiles in brackets. Ratios are to the first line of the table, in the same round. A run in which a handler runs more
or less often than it must ends with an error.

`, "`", r.when.UTC().Format("2 January 2006"), r.host, r.rounds, r.slice)
	r.targets(&b)
	for _, g := range []kin{direct, overHTTP} {
		r.paces(&b, g, replayed, r.usual(replayed)...)
	}
	b.WriteString("Redis CPU is that of the whole server (INFO cpu), of one caller. Commands are those that the client sends and waits for. " +
		"Bytes are MEMORY USAGE of one answered request, its key included.\n\n")
	r.promised(&b)
	r.whoIsWho(&b)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (r *guardResults) in(g kin) (all []guarding) {
	for _, c := range r.all {
		if c.kin == g {
			all = append(all, c)
		}
	}
	return all
}

// beside is a figure over that of another contestant in the same round.
func (r *guardResults) beside(name, base string, figure func(turn) float64) spread {
	ratios := make([]float64, len(r.measured[name]))
	for i, one := range r.measured[name] {
		ratios[i] = figure(one) / figure(r.measured[base][i])
	}
	return spreadOf(ratios)
}

func firsts(goroutines int) func(turn) float64 {
	return func(t turn) float64 { return t.first[goroutines].rate }
}

func replays(goroutines int) func(turn) float64 {
	return func(t turn) float64 { return t.replay[goroutines].rate }
}

// ways are what the two ways of asking are called.
type ways struct{ first, replay, crowd string }

var replayed = ways{"first", "replayed", "at once"}

// column is one more of the table of paces.
type column struct {
	head string
	cell func(name string) string
}

func (r *guardResults) paces(b *strings.Builder, g kin, w ways, more ...column) {
	all := r.in(g)
	base := all[0].name
	head := []string{""}
	var figures []func(turn) float64
	for _, n := range r.crowds {
		head = append(head, fmt.Sprintf("%s a second, %d %s", w.first, n, w.crowd), "ratio", fmt.Sprintf("%s a second, %d %s", w.replay, n, w.crowd), "ratio")
		figures = append(figures, firsts(n), replays(n))
	}
	for _, c := range more {
		head = append(head, c.head)
	}
	var rows [][]string
	for _, c := range all {
		row := []string{c.name}
		for _, figure := range figures {
			rate, ratio := over(r.measured[c.name], figure), r.beside(c.name, base, figure)
			row = append(row, fmt.Sprintf("%.0f (%.0f–%.0f)", rate.median, rate.low, rate.high),
				fmt.Sprintf("%.2f (%.2f–%.2f)", ratio.median, ratio.low, ratio.high))
		}
		for _, column := range more {
			row = append(row, column.cell(c.name))
		}
		rows = append(rows, row)
	}
	table(b, strings.ToUpper(string(g[:1]))+string(g[1:]), head, rows)
}

// commands are two columns, of what a contestant sends.
func (r *guardResults) commands(w ways) []column {
	return []column{
		{"commands, " + w.first, func(name string) string { return fmt.Sprintf("%.3g", r.kept[name].first) }},
		{w.replay, func(name string) string { return fmt.Sprintf("%.3g", r.kept[name].replay) }},
	}
}

// costs are two columns, of the fewest goroutines.
func (r *guardResults) costs(w ways, what, format string, figure func(pace) float64) []column {
	n := r.crowds[0]
	cell := func(of func(turn) pace) func(string) string {
		return func(name string) string {
			return fmt.Sprintf(format, over(r.measured[name], func(t turn) float64 { return figure(of(t)) }).median)
		}
	}
	return []column{
		{what + ", " + w.first, cell(func(t turn) pace { return t.first[n] })},
		{w.replay, cell(func(t turn) pace { return t.replay[n] })},
	}
}

// usual are the columns of what is kept for a request.
func (r *guardResults) usual(w ways) []column {
	all := append(r.commands(w), r.costs(w, "Redis CPU, µs", "%.0f", func(p pace) float64 { return p.cpu })...)
	return append(all, column{"bytes", func(name string) string { return dashed(r.kept[name].bytes) }})
}

func dashed(n float64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", n)
}

func (r *guardResults) targets(b *strings.Builder) {
	k := r.kept[neapGuard]
	fmt.Fprintf(b, "## What neap set itself\n\n- round trips of a first request %.3g, to be %d, and of a replay %.3g, to be 1: %s\n",
		k.first, targetFirst, k.replay, holds(k.first == targetFirst && k.replay == 1))
	fmt.Fprintf(b, "- an answer of %d bytes is kept in %.0f, to be at most %.0f: %s\n", len(answer), k.bytes, targetKept, holds(k.bytes <= targetKept))
	for _, n := range r.crowds {
		costs := r.beside(guardGET, neapGuard, replays(n)).median
		fmt.Fprintf(b, "- a replay, %d at once, costs %.2f GETs of the same bytes, to be at most %.1f: %s; a script that does nothing but GET costs %.2f\n",
			n, costs, targetReplay, holds(costs <= targetReplay), r.beside(guardGET, guardByLua, replays(n)).median)
	}
	b.WriteString("\n")
	for _, what := range []struct {
		name   string
		figure func(int) func(turn) float64
	}{{"first requests", firsts}, {"replays", replays}} {
		for _, n := range r.crowds {
			if len(r.measured[neapFiber]) > 0 {
				s := r.beside(neapFiber, fibersOwn, what.figure(n))
				fmt.Fprintf(b, "Behind Fiber, %d at once, neap serves %.2f (%.2f–%.2f) times as many %s as Fiber's own middleware.\n",
					n, s.median, s.low, s.high, what.name)
			}
		}
	}
	b.WriteString("\n")
}

func (r *guardResults) promised(b *strings.Builder) {
	head := []string{""}
	rows := [][]string{
		{"two duplicates at once, on two instances"},
		{"the key again, with another body"},
		{"the key again, by another user"},
		{"the first's Set-Cookie in a replay"},
		{"Redis full when the handler has run, and one repetition"},
	}
	reused := func(status int, leaks bool) string {
		if leaks {
			return fmt.Sprintf("**the first's answer** (%d)", status)
		}
		return strconv.Itoa(status)
	}
	for _, c := range r.in(overHTTP) {
		p, ok := r.promises[c.name]
		if !ok {
			continue
		}
		head = append(head, c.name)
		for i, text := range []string{
			fmt.Sprintf("%s; the second is answered %d", runs(p.beside), p.besideIs),
			reused(p.otherBody, p.bodyLeaks), reused(p.otherUser, p.userLeaks), yes(p.cookie),
			fmt.Sprintf("%s; the first is answered %d", runs(p.fullRuns), p.full),
		} {
			rows[i] = append(rows[i], text)
		}
	}
	table(b, "What they promise: tried over HTTP in this run", head, rows)
}

func runs(n int64) string {
	if n == 1 {
		return "runs once"
	}
	return fmt.Sprintf("**runs %d times**", n)
}

func (r *guardResults) whoIsWho(b *strings.Builder) {
	var rows [][]string
	for _, c := range r.all {
		what := c.what
		if c.module != "" {
			what += fmt.Sprintf(" (%s %s)", strings.TrimPrefix(c.module, "github.com/"), version(c.module))
		}
		rows = append(rows, []string{c.name, what})
	}
	if len(r.in(overHTTP)) > 0 {
		rows = append(rows, []string{"the storage", strings.TrimPrefix(fiberStore, "github.com/") + " " + version(fiberStore)})
	}
	table(b, "Who", []string{"", "what it is"}, rows)
}
