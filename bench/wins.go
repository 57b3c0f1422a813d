package main

import (
	"fmt"
	"strconv"
	"strings"
)

// group is what a figure is of.
type group string

const (
	rates       group = "decisions a second"
	redisCPU    group = "Redis CPU a decision"
	allocations group = "allocations a decision"
	memory      group = "memory of a subject"
)

var groups = []group{rates, redisCPU, allocations, memory}

// match is one figure of a peer beside neap's of the same algorithm.
type match struct {
	group      group
	figure     string
	peer, neap spread
	least      bool // the lower figure wins
	unit       string
}

func (m match) peerWins() bool {
	if m.least {
		return m.neap.above(m.peer)
	}
	return m.peer.above(m.neap)
}

func (m match) neapWins() bool {
	m.peer, m.neap = m.neap, m.peer
	return m.peerWins()
}

// opponent is neap's contestant of the same algorithm and kind of client.
func (r *results) opponent(c contestant) (contestant, bool) {
	for _, o := range r.contestants {
		if o.kind == ours && o.algorithm == c.algorithm && o.crowd == c.crowd && !o.refills && (o.crowd || o.twin == "") {
			return o, true
		}
	}
	return contestant{}, false
}

func (r *results) matches(c, own contestant) []match {
	var all []match
	add := func(m match) {
		if m.peer.rounds > 0 && m.neap.rounds > 0 {
			all = append(all, m)
		}
	}
	for _, keys := range r.plan.keys {
		for _, denied := range []bool{false, true} {
			for _, at := range r.cells(keys, denied) {
				add(match{rates, "decisions a second, " + at.text(), r.throughput(c.name, at), r.throughput(own.name, at), false, "floors"})
			}
			_, peer := r.cpu(c.name, keys, denied)
			_, neap := r.cpu(own.name, keys, denied)
			add(match{
				redisCPU, fmt.Sprintf("Redis CPU, %s, %s", keysText(keys), cell{denied: denied}.answer()), peer, neap, true, "floors",
			})
		}
	}
	for _, denied := range []bool{false, true} {
		add(match{
			allocations, "allocations, " + cell{denied: denied}.answer(), r.allocs(c.name, denied), r.allocs(own.name, denied), true, "beyond the floor's",
		})
	}
	if f, g := r.facts[c.name], r.facts[own.name]; f.keys > 0 && g.keys > 0 {
		add(match{memory, "memory of a subject", exactly(f.bytes), exactly(g.bytes), true, "bytes"})
	}
	return all
}

func exactly(n float64) spread { return spread{n, n, n, 1} }

// tally counts matches from neap's side.
type tally struct{ ahead, behind, even int }

func (t *tally) add(m match) {
	switch {
	case m.neapWins():
		t.ahead++
	case m.peerWins():
		t.behind++
	default:
		t.even++
	}
}

func (t *tally) figures() int { return t.ahead + t.behind + t.even }

// duel is all that a peer and neap's own of the same algorithm are compared in.
type duel struct {
	peer, own contestant
	matches   []match
}

func (r *results) duels() []duel {
	var all []duel
	for _, c := range r.contestants {
		if own, ok := r.opponent(c); ok && c.kind != ours && c.kind != floor {
			all = append(all, duel{c, own, r.matches(c, own)})
		}
	}
	return all
}

// whereAPeerWins compares algorithm by algorithm.
func (r *results) whereAPeerWins(b *strings.Builder) {
	duels := r.duels()
	b.WriteString("## Where a peer wins\n\nEach is compared with neap's own of the same algorithm. A figure wins when its quartiles and the other's do not\n" +
		"overlap; all else is even.\n" + whatIsCompared(duels) + "\n\n")
	summary(b, duels)
	b.WriteString("From here on ahead and behind are said from the peer's side: a peer that is ahead beats neap.\n\n")
	var rows [][]string
	for _, d := range duels {
		var t tally
		for _, m := range d.matches {
			t.add(m)
			if m.peerWins() {
				rows = append(rows, []string{d.peer.name, m.figure, figure(m.peer), figure(m.neap), m.unit})
			}
		}
		fmt.Fprintf(b, "- **%s** beside %s: of %d figures ahead in %d, behind in %d, even in %d\n",
			d.peer.name, d.own.name, t.figures(), t.behind, t.ahead, t.even)
	}
	b.WriteString("\n")
	if len(rows) > 0 {
		table(b, "", []string{"ahead of neap", "in", "its figure", "neap's", ""}, rows)
	}
}

// whatIsCompared is told of the peer that has the most figures.
func whatIsCompared(duels []duel) string {
	var most []match
	for _, d := range duels {
		if len(d.matches) > len(most) {
			most = d.matches
		}
	}
	count := map[group]int{}
	for _, m := range most {
		count[m.group]++
	}
	var parts []string
	for _, g := range groups {
		parts = append(parts, fmt.Sprintf("%d of %s", count[g], g))
	}
	return fmt.Sprintf("A peer that takes part in everything has %d figures: %s.\n"+
		"One that is there for a crowd takes part from %d goroutines on, and has fewer. First from neap's side:",
		len(most), strings.Join(parts, ", "), manyCallers)
}

// summary is from neap's side, group by group.
func summary(b *strings.Builder, duels []duel) {
	kinds := []kind{peer, tutorial}
	head := []string{"neap beside"}
	for _, whose := range []string{"the libraries", "the tutorials' forms"} {
		head = append(head, whose+": neap ahead", "neap behind", "even")
	}
	var rows [][]string
	for _, g := range groups {
		row := []string{string(g)}
		for _, k := range kinds {
			var t tally
			for _, d := range duels {
				for _, m := range d.matches {
					if d.peer.kind == k && m.group == g {
						t.add(m)
					}
				}
			}
			row = append(row, strconv.Itoa(t.ahead), strconv.Itoa(t.behind), strconv.Itoa(t.even))
		}
		rows = append(rows, row)
	}
	table(b, "", head, rows)
}

func figure(s spread) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", s.median), "0"), ".")
}
