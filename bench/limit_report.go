package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The targets that the project set itself for its limiters.
const (
	targetPiped = 1.7 // floors, by AutoPipeline in the busiest cell
	targetBytes = 128 // a key of a bucket or a window
)

// limitsReport is RESULTS.md.
func limitsReport(r *results) report {
	return report{
		title: "neap beside its peers",
		prose: fmt.Sprintf(`![Decisions a second and Redis CPU](RESULTS.svg)

This page compares neap's rate limiters with other Go libraries, and with the forms that tutorials teach: decisions a
second, CPU of Redis, allocations and memory.

- All contestants call one redis-server over loopback. Each has its own client, its own database and %d connections,
  which is go-redis' default.
- The floor is EVALSHA of `+"`return 1`"+` through plain go-redis with the same options.
- In each of %d rounds every contestant is asked for %s, in shuffled order. The floor is asked again and again in
  between. A figure is a ratio to the floor of its own round. The tables have the median of the rounds with its quartiles.
- Every answer is checked. A contestant that denies where it must admit, or admits where it must deny, ends the run.
- neap fails closed, so an outage is never counted as decisions. Its budget is %s, because no peer has one.
- The figures of remembered denials and prepaid permits count decisions that neap makes in process, from what Redis
  answered before.
- Within the rounds of one column the floor itself moved by a factor of up to %.1f, because of other load on the machine.`,
			conns(), r.plan.rounds, r.plan.slice, budget, r.floorRange()),
		sections: slices.Concat(r.wherePeersWin(), []section{
			targets(r.limitTargets()), r.millions(), r.who("algorithm"), r.throughputs(admitted), r.throughputs(denied),
			r.costs(), r.conduct(), r.memory(), r.failures(),
		}),
		picture: picture(r),
		glance:  glance,
	}
}

func (r *results) limitTargets() []target {
	all := []target{{
		pipedName + ", " + r.busiest().text(), r.floors(rate, pipedName, r.busiest()),
		"%.2f", " floors", atLeast, targetPiped,
	}}
	all = append(all, r.queueTargets()...)
	for _, c := range r.contestants {
		if f := r.facts[c.name]; c.kind == ours && f.keys > 0 && c.group != history && c.group != both {
			all = append(all, target{c.name, exactly(f.bytes), "%.0f", " bytes a key", atMost, targetBytes})
		}
	}
	return all
}

// queueTargets are those of what is sent together, remembered and prepaid. Ratios of decisions a second are to the floor.
func (r *results) queueTargets() []target {
	one, all := slices.Min(r.plan.keys), slices.Max(r.plan.keys)
	targets := []target{{
		bucketName + " to " + directName + ", one hot key, 1 goroutine, admitted", r.ratio(rate, bucketName, directName, cell{admitted, one, 1, false}),
		"%.2f", "", atLeast, 0.91,
	}}
	for _, t := range []struct {
		name  string
		at    cell
		bound float64
	}{
		{bucketName, cell{admitted, one, 16, false}, 3},
		{bucketName, cell{admitted, one, 256, false}, 12},
		{bucketName, cell{admitted, all, 256, false}, 3.5},
		{bucketName, cell{admitted, one, 256, true}, 12},
		{bucketName, cell{admitted, all, 256, true}, 9},
		{bothName, cell{admitted, one, 16, false}, 1.5},
		{bothName, cell{admitted, one, 256, false}, 6},
		{bothName, cell{admitted, all, 256, false}, 1.8},
		{logName, cell{admitted, one, 256, false}, 3.5},
		{logName, cell{admitted, all, 256, false}, 1.6},
		{rememberedName, cell{denied, one, 1, false}, 100},
		{rememberedName, cell{denied, one, 16, false}, 100},
		{rememberedName, cell{denied, one, 256, false}, 100},
		{prepaidName, cell{admitted, one, 1, false}, 100},
		{prepaidName, cell{admitted, one, 16, false}, 100},
	} {
		targets = append(targets, target{t.name + ", " + t.at.text(), r.floors(rate, t.name, t.at), "%.1f", " floors", atLeast, t.bound})
	}
	for _, t := range []struct {
		name  string
		at    cell
		bound float64
	}{
		{bucketName, cell{admitted, one, 256, false}, 2},
		{bucketName, cell{admitted, all, 256, false}, 2},
		{rememberedName, cell{denied, one, 1, false}, targetNothing},
		{prepaidName, cell{admitted, one, 1, false}, targetNothing},
	} {
		targets = append(targets, target{t.name + ", " + t.at.text(), r.of(allocations, t.name, t.at), "%.2f", " allocations", atMost, t.bound})
	}
	return targets
}

// targetNothing is of allocations: a charge of permits is one of thousands of decisions, but not nothing.
const targetNothing = 0.05

// negligible is the CPU of Redis a decision, in microseconds, below which a core carries more than processes ask for.
const negligible = 0.1

// millions is what the ways of asking cost with the most callers.
func (r *results) millions() section {
	one, all, callers := slices.Min(r.plan.keys), slices.Max(r.plan.keys), slices.Max(r.plan.goroutines)
	ways := map[string]struct {
		name string
		at   cell
	}{
		"plain":             {windowDirectName, cell{admitted, all, callers, false}},
		"merged, many keys": {windowName, cell{admitted, all, callers, false}},
		"merged, one key":   {windowName, cell{admitted, one, callers, false}},
		"remembered":        {rememberedName, cell{denied, one, callers, false}},
		"prepaid":           {prepaidName, cell{admitted, one, callers, false}},
	}
	of := func(m metric) func(string) any {
		return func(way string) any { return r.of(m, ways[way].name, ways[way].at).middle() }
	}
	return table("What a million decisions cost", []string{"plain", "merged, many keys", "merged, one key", "remembered", "prepaid"}, []column{
		{"contestant", "%s", func(way string) any { return ways[way].name }},
		{"seconds of Redis' CPU", "%.3f", of(serverCPU)},
		{"seconds of the process' CPU", "%.2f", of(processCPU)},
		{"decisions a second that a core of Redis carries", "%.0f", func(way string) any {
			if s := r.of(serverCPU, ways[way].name, ways[way].at); s.rounds > 0 && s.median > negligible {
				return 1e6 / s.median
			}
			return nil
		}},
	}, fmt.Sprintf("With %d callers in one process.", callers))
}

// busiest is the cell of the most keys and goroutines, where all is admitted.
func (r *results) busiest() cell {
	return cell{admitted, slices.Max(r.plan.keys), slices.Max(r.plan.goroutines), false}
}

// floorRange is by which factor the floor moved between the rounds of a cell, at most.
func (r *results) floorRange() float64 {
	most := 1.0
	for _, at := range r.cells {
		slow, fast := math.Inf(1), 0.0
		for _, f := range r.measured[at][floorName] {
			slow, fast = min(slow, f[rate]), max(fast, f[rate])
		}
		most = max(most, fast/slow)
	}
	return most
}

// floors is a figure as a ratio to the floor's.
func (r *results) floors(m metric, name string, at cell) spread {
	return r.ratio(m, name, floorName, at)
}

// settings are the cells without their numbers of goroutines.
func (r *results) settings() []cell {
	var all []cell
	for _, at := range r.cells {
		if at.goroutines = 0; !at.away && !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// allocations are beyond the floor's, of one goroutine on the hot key.
func (r *results) allocations(name string, answer way) spread {
	alone := cell{answer, 1, 1, false}
	return r.beside(allocations, name, floorName, alone, func(own, floor float64) float64 { return own - floor })
}

// throughputs has calls a second in the row of the floor, and ratios to it below.
func (r *results) throughputs(answer way) section {
	var columns []column
	absolute := []string{"*floor, a second*"}
	for _, at := range r.cells {
		if at.way == answer {
			absolute = append(absolute, fmt.Sprintf("*%.0f*", r.of(rate, floorName, at).median))
			head := fmt.Sprintf("%s, %d", keysText(at.keys), at.goroutines)
			if at.away {
				head += fmt.Sprintf(", %v away", distance)
			}
			columns = append(columns, column{head, "%.2f", func(name string) any { return r.floors(rate, name, at) }})
		}
	}
	s := table(fmt.Sprintf("Decisions a second, %s, as a ratio to the floor, by keys and goroutines", answer),
		namesOf(r.contestants), columns, "")
	s.rows[0] = absolute
	return s
}

func (r *results) costs() section {
	var columns []column
	for _, at := range r.settings() {
		columns = append(columns, column{at.text(), "%s", func(name string) any {
			usec := r.of(commandCPU, name, at)
			if usec.rounds == 0 {
				return nil
			}
			return fmt.Sprintf("%.2f (%.1f)", usec.median, r.floors(commandCPU, name, at).median)
		}})
	}
	for _, answer := range []way{admitted, denied} {
		columns = append(columns, column{"allocations, " + string(answer), "%+d", func(name string) any {
			s := r.allocations(name, answer)
			if s.rounds == 0 {
				return nil
			}
			return int(math.Round(s.median))
		}})
	}
	return table("Redis CPU a decision, in microseconds (and floors), and allocations beyond the floor's",
		namesOf(r.contestants), columns,
		`The CPU is Redis' own count of the time in commands (INFO commandstats), over all numbers of goroutines. It does not
include reading, parsing and answering, so two round trips cost more than it shows. The ratio in brackets is the median
of the rounds' own ratios. Therefore it is not the quotient of the medians beside it.

Allocations are those of one goroutine on the hot key. A contestant below 0 allocates less than the floor: it does not
use go-redis, or uses it for plain commands, or builds the command itself, as neap does.`)
}

// conduct is what a decision does. A limiter that was not asked to deny has dashes.
func (r *results) conduct() section {
	sends := func(answer way) func(string) any {
		return func(name string) any {
			one := r.facts[name].sends[answer]
			if one.count == 0 {
				return nil
			}
			return fmt.Sprintf("%s: %.2g", strings.ToUpper(strings.Join(one.commands, " ")), one.trips)
		}
	}
	most := func(name string) any {
		f := r.facts[name].limiter
		switch {
		case f.most == 0:
			return nil
		case f.failed > 0:
			return fmt.Sprintf("%d (and %d errors)", f.most, f.failed)
		}
		return strconv.FormatInt(f.most, 10)
	}
	writes := func(name string) any {
		if sends(denied)(name) == nil {
			return nil
		}
		return yes(r.facts[name].limiter.writes)
	}
	return table("What a decision does", r.withFacts(func(facts) bool { return true }), []column{
		{"admitted: commands, round trips", "%s", sends(admitted)},
		{"denied", "%s", sends(denied)},
		{"admitted of a limit of 1,000", "%s", most},
		{"a denied request writes", "%s", writes},
		{"leaves keys without a TTL", "%s", func(name string) any { return yes(r.facts[name].limiter.withoutTTL) }},
	}, fmt.Sprintf("%d callers on %d instances asked the limit of 1,000 at once. The figure is the worst of %d tries.",
		processes*callers, processes, r.plan.tries))
}

func (r *results) memory() section {
	return table("Memory of a subject", r.withFacts(func(f facts) bool { return f.keys > 0 }), []column{
		{"bytes (MEMORY USAGE)", "%.0f", func(name string) any { return r.facts[name].bytes }},
		{"keys", "%.0f", func(name string) any { return r.facts[name].keys }},
	}, fmt.Sprintf("The subject is as short as `%s`, and has made %d requests. The bucket is one of 20, the window one of "+
		"1,000 an hour, the log one of 5 in 10 minutes.", subject, keptRequests))
}

func (r *results) withFacts(wanted func(facts) bool) []string {
	return slices.DeleteFunc(namesOf(r.contestants), func(name string) bool {
		f, ok := r.facts[name]
		return !ok || !wanted(f)
	})
}

// failures tells which contestants could not answer at times.
func (r *results) failures() section {
	var lines []string
	for _, c := range r.contestants {
		for _, at := range r.cells {
			if s := r.of(failedShare, c.name, at); s.median > 0 {
				text := c.name + ", " + at.text()
				lines = append(lines, fmt.Sprintf("- %s: %.1f %% of the calls failed", text, 100*s.median))
			}
		}
	}
	if len(lines) == 0 {
		lines = []string{"No call failed."}
	}
	return section{title: "Errors", before: strings.Join(lines, "\n")}
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}
