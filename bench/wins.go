package main

import (
	"fmt"
	"strings"
)

// match is one figure of a peer beside neap's of the same algorithm.
type match struct {
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
				add(match{"decisions a second, " + at.text(), r.throughput(c.name, at), r.throughput(own.name, at), false, "floors"})
			}
			_, peer := r.cpu(c.name, keys, denied)
			_, neap := r.cpu(own.name, keys, denied)
			add(match{
				fmt.Sprintf("Redis CPU, %s, %s", keysText(keys), cell{denied: denied}.answer()), peer, neap, true, "floors",
			})
		}
	}
	for _, denied := range []bool{false, true} {
		add(match{
			"allocations, " + cell{denied: denied}.answer(), r.allocs(c.name, denied), r.allocs(own.name, denied), true, "beyond the floor's",
		})
	}
	if f, g := r.facts[c.name], r.facts[own.name]; f.keys > 0 && g.keys > 0 {
		add(match{"memory of a subject", exactly(f.bytes), exactly(g.bytes), true, "bytes"})
	}
	return all
}

func exactly(n float64) spread { return spread{n, n, n, 1} }

// whereAPeerWins compares algorithm by algorithm.
func (r *results) whereAPeerWins(b *strings.Builder) {
	b.WriteString("## Where a peer wins\n\nEach is compared with neap's own of the same algorithm. A figure wins when its quartiles and the other's do not\n" +
		"overlap; all else is even.\n\n")
	var rows [][]string
	for _, c := range r.contestants {
		own, ok := r.opponent(c)
		if !ok || c.kind == ours || c.kind == floor {
			continue
		}
		all := r.matches(c, own)
		won, lost := 0, 0
		for _, m := range all {
			if m.peerWins() {
				won++
				rows = append(rows, []string{c.name, m.figure, figure(m.peer), figure(m.neap), m.unit})
			}
			if m.neapWins() {
				lost++
			}
		}
		fmt.Fprintf(b, "- **%s** beside %s: of %d figures ahead in %d, behind in %d, even in %d\n",
			c.name, own.name, len(all), won, lost, len(all)-won-lost)
	}
	b.WriteString("\n")
	if len(rows) > 0 {
		table(b, "", []string{"ahead of neap", "in", "its figure", "neap's", ""}, rows)
	}
}

func figure(s spread) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", s.median), "0"), ".")
}
