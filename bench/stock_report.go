package main

import (
	"fmt"
	"slices"
	"strings"
)

// saleCrowds are how many connections buyers come by.
var saleCrowds = []int{16, 256}

// targetOfDECR is what the project set itself: of the throughput of the handler
// behind DECR.
const targetOfDECR = 0.8

type saleResults struct{ *guardResults }

// report is STOCK.md.
func (r *saleResults) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# A flash sale with neap and with DECR

Written by %[1]smake bench-peers%[1]s on %[2]s: %[3]s. Every sentence and figure below is computed from that run.

The same handler answers 201 behind net/http, over HTTP, and before it stands what the line says. Who is sold to has nothing
yet; who is refused asks for an item that is sold out, and gets a 409. DECR counts and no more: who asks again buys twice,
and a handler that fails leaves its unit sold.

Each contestant was measured in %[4]d rounds of %[5]s, in shuffled order; a figure is the median of the rounds, with its
quartiles in brackets. Ratios are to DECR, in the same round. The client that asks has the cores that the handler and Redis
have; what it and net/http cost, the last line, is part of both sides of a ratio. A run in which the handler runs more or
less often than it must ends with an error.

`, "`", r.when.UTC().Format("2 January 2006"), r.host, r.rounds, r.slice)
	r.targets(&b)
	w := ways{"sold", "refused", "connections"}
	r.paces(&b, behindHTTP, w, slices.Concat(
		r.commands(w),
		r.costs(w, "script CPU, µs", "%.1f", func(p pace) float64 { return p.within }),
		r.costs(w, "Redis CPU, µs", "%.0f", func(p pace) float64 { return p.cpu }),
		r.costs(w, "CPU of the process, µs", "%.0f", func(p pace) float64 { return p.own }),
		r.costs(w, "allocations", "%.0f", func(p pace) float64 { return p.allocs }),
	)...)
	b.WriteString("Script CPU is what Redis counts for EVALSHA or DECR (INFO commandstats), and Redis CPU that of the whole server (INFO cpu). " +
		"The process is the handler, its server and its client. All of these are a request's, by the fewest connections.\n\n")
	r.whoIsWho(&b)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (r *saleResults) targets(b *strings.Builder) {
	fmt.Fprintf(b, "## What neap set itself\n\n")
	for _, n := range r.crowds {
		ratio, script := r.beside(saleAtOnce, saleByDECR, firsts(n)), r.beside(saleByLua, saleByDECR, firsts(n))
		fmt.Fprintf(b, "- sold at once, by %d connections: %.2f (%.2f–%.2f) of the throughput behind DECR, to be at least %.1f: %s; a script that does nothing but DECR has %.2f\n",
			n, ratio.median, ratio.low, ratio.high, targetOfDECR, holds(ratio.median >= targetOfDECR), script.median)
	}
	for _, n := range r.crowds {
		confirmed, refused := r.beside(saleConfirmed, saleByDECR, firsts(n)), r.beside(saleAtOnce, saleByDECR, replays(n))
		fmt.Fprintf(b, "- reserved and confirmed, by %d connections: %.2f (%.2f–%.2f); refused, since it is sold out: %.2f (%.2f–%.2f)\n",
			n, confirmed.median, confirmed.low, confirmed.high, refused.median, refused.low, refused.high)
	}
	for _, n := range r.crowds {
		fmt.Fprintf(b, "- CPU of Redis and the process together, by %d connections: that of DECR is %.2f of what a sale at once takes, and %.2f of a script's\n",
			n, r.beside(saleByDECR, saleAtOnce, takes(n)).median, r.beside(saleByDECR, saleByLua, takes(n)).median)
	}
	b.WriteString("\n")
}

// takes is the CPU time of a sale, of which neighbours on the machine take less
// away than of the throughput.
func takes(connections int) func(turn) float64 {
	return func(t turn) float64 { return t.first[connections].cpu + t.first[connections].own }
}
