package main

import (
	"fmt"
	"strings"
)

// compared is a figure in which limiters are compared.
type compared struct {
	group, text, unit string
	least             bool // the lower figure wins
	figure            func(name string) spread
}

// comparedGroups are the groups of such figures.
var comparedGroups = []string{
	"decisions a second", "Redis CPU a decision", "allocations a decision", "memory of a subject",
}

func (r *results) compared() []compared {
	var all []compared
	for _, at := range r.cells {
		all = append(all, compared{comparedGroups[0], "decisions a second, " + at.text(), "floors", false,
			func(name string) spread { return r.floors(rate, name, at) }})
	}
	for _, at := range r.settings() {
		all = append(all, compared{comparedGroups[1], "Redis CPU, " + at.text(), "floors", true,
			func(name string) spread { return r.floors(commandCPU, name, at) }})
	}
	for _, at := range []way{admitted, denied} {
		all = append(all, compared{comparedGroups[2], "allocations, " + string(at), "beyond the floor's", true,
			func(name string) spread { return r.allocations(name, at) }})
	}
	return append(all, compared{comparedGroups[3], "memory of a subject", "bytes", true, func(name string) spread {
		if f := r.facts[name]; f.keys > 0 {
			return exactly(f.bytes)
		}
		return spread{}
	}})
}

// comparison is one figure of a peer beside that of neap's own limiter.
type comparison struct {
	compared
	peer, own    contestant
	theirs, mine spread
}

// comparisons are of every peer, in each figure that it and neap's own have.
func (r *results) comparisons() (all []comparison) {
	for _, c := range r.contestants {
		own, ok := r.ownOf(c)
		for _, f := range r.compared() {
			one := comparison{f, c, own, f.figure(c.name), f.figure(own.name)}
			if ok && one.theirs.rounds > 0 && one.mine.rounds > 0 {
				all = append(all, one)
			}
		}
	}
	return all
}

// ownOf is neap's limiter of a peer's algorithm, on the same kind of client.
func (r *results) ownOf(c contestant) (contestant, bool) {
	for _, o := range r.contestants {
		if o.kind == ours && o.group == c.group && o.client == c.client && !o.refills {
			return o, c.kind == peer || c.kind == tutorial
		}
	}
	return contestant{}, false
}

// verdict is from neap's side.
type verdict string

const (
	ahead  verdict = "ahead"
	behind verdict = "behind"
	even   verdict = "even"
)

func (c comparison) verdict() verdict {
	high, low := ahead, behind
	if c.least {
		high, low = behind, ahead
	}
	switch {
	case c.mine.above(c.theirs):
		return high
	case c.theirs.above(c.mine):
		return low
	}
	return even
}

// count is how many comparisons have a verdict.
func count(all []comparison, v verdict, of func(comparison) bool) (n int) {
	for _, c := range all {
		if of(c) && c.verdict() == v {
			n++
		}
	}
	return n
}

// wherePeersWin has sections under one heading: from neap's side, from the side of each
// peer, and the figures in which a peer is ahead.
func (r *results) wherePeersWin() []section {
	all := r.comparisons()
	return []section{r.summary(all), r.perPeer(all), aheadOfNeap(all)}
}

func (r *results) summary(all []comparison) section {
	figures := map[string]int{}
	for _, f := range r.compared() {
		figures[f.group]++
	}
	columns := []column{{"figures of each", "%d", func(group string) any { return figures[group] }}}
	for _, of := range []struct {
		head string
		kind kind
	}{{"the libraries: ", peer}, {"the tutorials' forms: ", tutorial}} {
		for _, v := range []verdict{ahead, behind, even} {
			columns = append(columns, column{of.head + string(v), "%d", func(group string) any {
				return count(all, v, func(c comparison) bool { return c.group == group && c.peer.kind == of.kind })
			}})
		}
	}
	s := table("Where a peer wins", comparedGroups, columns,
		"From here on, ahead and behind are from the peer's side: a peer that is ahead beats neap.")
	s.before = fmt.Sprintf(`
Each peer is compared with neap's own limiter of the same algorithm. A figure is ahead if its quartiles and the other's
do not overlap. Everything else is even.

A peer that takes part in everything has %d figures. A peer for many callers takes part from %d goroutines on, and has
fewer. This table is from neap's side: "ahead" counts the figures in which neap wins.`, len(r.compared()), manyCallers)
	return s
}

func (r *results) perPeer(all []comparison) section {
	var lines []string
	for _, c := range r.contestants {
		if own, ok := r.ownOf(c); ok {
			of := func(other comparison) bool { return other.peer.name == c.name }
			won, lost, same := count(all, behind, of), count(all, ahead, of), count(all, even, of)
			lines = append(lines, fmt.Sprintf("- **%s** beside %s: of %d figures, ahead in %d, behind in %d, even in %d",
				c.name, own.name, won+lost+same, won, lost, same))
		}
	}
	return section{before: strings.Join(lines, "\n")}
}

func aheadOfNeap(all []comparison) section {
	s := section{head: []string{"ahead of neap", "in", "its figure", "neap's", ""}}
	for _, c := range all {
		if c.verdict() == behind {
			theirs, mine := fmt.Sprintf("%.3g", c.theirs.median), fmt.Sprintf("%.3g", c.mine.median)
			s.rows = append(s.rows, []string{c.peer.name, c.text, theirs, mine, c.unit})
		}
	}
	return s
}
