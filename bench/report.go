package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The targets that the project set itself.
const (
	targetPiped = 1.7 // floors, by AutoPipeline in the busiest cell
	targetBytes = 128 // a key of a bucket or a window
)

// report is RESULTS.md.
func (r *results) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# neap beside its peers

Written by %[1]smake bench-peers%[1]s on %[2]s: %[3]s. Every sentence and figure below is computed from that run.

![Decisions a second and Redis CPU](RESULTS.svg)

All call one redis-server over loopback, each with its own client, %[4]d connections (go-redis' default) and database.
The floor is EVALSHA of %[1]sreturn 1%[1]s through plain go-redis with the same options. In each of %[5]d rounds every
contestant is asked for %[6]s, in shuffled order, with the floor again and again in between; a figure is a ratio
to the floor of its own round, and the tables have the median of the rounds with its quartiles. Every answer is
checked: a contestant that denies where it must admit, or admits where it must deny, ends the run. neap fails closed,
so that no decision is counted that Redis did not make; its budget is %[7]s, because no peer has any.
Within the rounds of one column the floor itself moved by a factor of up to %.1[8]f, which is what others did on the machine.

`, "`", r.when.UTC().Format("2 January 2006"), r.host, conns(), r.plan.rounds, r.plan.slice, budget, r.unrest())

	r.whereAPeerWins(&b)
	r.targets(&b)
	r.whoIsWho(&b)
	r.throughputs(&b, false)
	r.throughputs(&b, true)
	r.costs(&b)
	r.conduct(&b)
	r.memory(&b)
	r.faults(&b)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// table has no heading where the title is empty.
func table(b *strings.Builder, title string, head []string, rows [][]string) {
	if title != "" {
		fmt.Fprintf(b, "## %s\n\n", title)
	}
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\n")
}

func (r *results) whoIsWho(b *strings.Builder) {
	var rows [][]string
	for _, c := range r.contestants {
		what := c.what
		if c.module != "" {
			what += fmt.Sprintf(" (%s %s)", strings.TrimPrefix(c.module, "github.com/"), version(c.module))
		}
		rows = append(rows, []string{c.name, string(c.algorithm), what})
	}
	table(b, "Who", []string{"", "algorithm", "what it is"}, rows)
}

func (r *results) throughputs(b *strings.Builder, denied bool) {
	head := []string{""}
	var cells []cell
	for _, keys := range r.plan.keys {
		for _, c := range r.cells(keys, denied) {
			cells = append(cells, c)
			head = append(head, fmt.Sprintf("%s, %d", keysText(c.keys), c.goroutines))
		}
	}
	rows := [][]string{{"*floor, a second*"}}
	for _, c := range cells {
		rows[0] = append(rows[0], fmt.Sprintf("*%.0f*", r.of(floorName, func(s sample) float64 { return s.perSecond }, c).median))
	}
	for _, c := range r.contestants {
		row := []string{c.name}
		for _, cell := range cells {
			row = append(row, ratio(r.throughput(c.name, cell)))
		}
		if c.name != floorName {
			rows = append(rows, row)
		}
	}
	table(b, fmt.Sprintf("Decisions a second, %s, as a ratio to the floor, by keys and goroutines", cell{denied: denied}.answer()), head, rows)
}

func (r *results) costs(b *strings.Builder) {
	head := []string{""}
	for _, keys := range r.plan.keys {
		for _, answer := range []string{"admitted", "denied"} {
			head = append(head, keysText(keys)+", "+answer)
		}
	}
	head = append(head, "allocations, admitted", "denied")
	var rows [][]string
	for _, c := range r.contestants {
		row := []string{c.name}
		for _, keys := range r.plan.keys {
			for _, denied := range []bool{false, true} {
				usec, floors := r.cpu(c.name, keys, denied)
				row = append(row, cost(usec, floors))
			}
		}
		for _, denied := range []bool{false, true} {
			row = append(row, whole(r.allocs(c.name, denied)))
		}
		rows = append(rows, row)
	}
	table(b, "Redis CPU a decision, in microseconds (and floors), and allocations beyond the floor's", head, rows)
	b.WriteString("The CPU is Redis' own count of the time in commands (INFO commandstats), over all numbers of goroutines. Reading,\n" +
		"parsing and answering are not in it: of two round trips it shows less than they cost. The ratio in brackets is the\n" +
		"median of the rounds' own ratios, and so is not the quotient of the medians beside it. Allocations are those of one\n" +
		"goroutine on the hot key; a contestant below 0 does not use go-redis, or uses it for plain commands.\n\n")
}

func (r *results) conduct(b *strings.Builder) {
	var rows [][]string
	for _, c := range r.contestants {
		f, ok := r.facts[c.name]
		if !ok {
			continue
		}
		row := []string{c.name, commands(f.admitted), "–", "–", "–", yes(f.immortal)}
		if !c.refills {
			row[2], row[3], row[4] = commands(f.denied), strconv.FormatInt(f.most, 10), yes(f.writes)
			if f.failed > 0 {
				row[3] += fmt.Sprintf(" (and %d errors)", f.failed)
			}
		}
		rows = append(rows, row)
	}
	table(b, "What a decision does", []string{
		"", "admitted: commands, round trips", "denied", "admitted of a limit of 1,000", "a denied request writes", "leaves keys without a TTL",
	}, rows)
	fmt.Fprintf(b, "The limit of 1,000 was asked by %d callers on %d instances at once; the figure is the worst of %d tries.\n\n",
		processes*eachCalls, processes, r.plan.tries)
}

func (r *results) memory(b *strings.Builder) {
	var rows [][]string
	for _, c := range r.contestants {
		if f, ok := r.facts[c.name]; ok && f.keys > 0 {
			rows = append(rows, []string{c.name, fmt.Sprintf("%.0f", f.bytes), fmt.Sprintf("%.0f", f.keys)})
		}
	}
	table(b, "Memory of a subject", []string{"", "bytes (MEMORY USAGE)", "keys"}, rows)
	fmt.Fprintf(b, "A subject as short as `%s`, after %d requests; a bucket of 20, a window of 1,000 an hour, a log of 5 in 10 minutes.\n\n",
		subject, keptRequests)
}

// faults tells who could not answer at times.
func (r *results) faults(b *strings.Builder) {
	b.WriteString("## Errors\n\n")
	none := true
	for _, c := range r.contestants {
		for _, keys := range r.plan.keys {
			for _, at := range slices.Concat(r.cells(keys, false), r.cells(keys, true)) {
				if s := r.of(c.name, func(s sample) float64 { return s.errors }, at); s.median > 0 {
					fmt.Fprintf(b, "- %s, %s: %.1f %% of the calls failed\n", c.name, at.text(), 100*s.median)
					none = false
				}
			}
		}
	}
	if none {
		b.WriteString("No call failed.\n")
	}
}

func (r *results) targets(b *strings.Builder) {
	b.WriteString("## What neap set itself\n\n")
	piped := r.throughput(pipedName, r.busiest())
	fmt.Fprintf(b, "- %s in %s: %.2f floors, to be at least %.1f: %s.\n",
		pipedName, r.busiest().text(), piped.median, targetPiped, holds(piped.median >= targetPiped))
	for _, c := range r.contestants {
		if f := r.facts[c.name]; c.kind == ours && f.keys > 0 && (c.algorithm != history && c.algorithm != both) {
			fmt.Fprintf(b, "- %s: %.0f bytes a key, to be at most %d: %s.\n", c.name, f.bytes, targetBytes, holds(f.bytes <= targetBytes))
		}
	}
	b.WriteString("\n")
}

func holds(ok bool) string {
	if ok {
		return "held"
	}
	return "**not held**"
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

func ratio(s spread) string {
	if s.rounds == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.median, s.low, s.high)
}

func cost(usec, floors spread) string {
	if usec.rounds == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.1f)", usec.median, floors.median)
}

func whole(s spread) string {
	if s.rounds == 0 {
		return "–"
	}
	return strings.Replace(fmt.Sprintf("%+.0f", s.median), "-0", "+0", 1)
}

func commands(c call) string {
	return fmt.Sprintf("%s: %.2g", strings.ToUpper(strings.Join(c.commands, " ")), c.trips)
}
