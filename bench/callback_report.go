package main

import (
	"fmt"
	"strings"
)

// The targets that the project set itself for a callback.
const (
	targetDeliveries = 1000 // a second
	targetHandled    = 2    // round trips
	targetReplayed   = 1
)

type callbackResults struct{ *guardResults }

// report is CALLBACKS.md.
func (r *callbackResults) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Payment callbacks with neap and without

Written by %[1]smake bench-peers%[1]s on %[2]s: %[3]s. Every sentence and figure below is computed from that run.

A delivery is an event of Stripe's, signed, to a handler that books it, behind Gin, over HTTP. A first one was never sent
before, and a replayed one was, and acknowledged. Client and server have one core together (GOMAXPROCS=1), Redis what is left.
Each contestant was measured in %[4]d rounds of %[5]s, in shuffled order; a figure is the median of the rounds, with its
quartiles in brackets. Ratios are to the handler alone, in the same round. A run in which a handler runs more or less often
than it must ends with an error.

`, "`", r.when.UTC().Format("2 January 2006"), r.host, r.rounds, r.slice)
	r.targets(&b)
	r.paces(&b, behindGin, replayed, r.usual(replayed)...)
	b.WriteString("Redis CPU is that of the whole server (INFO cpu), of one caller. Commands are those that the endpoint sends and waits for. " +
		"Bytes are MEMORY USAGE of one event that is done, its key included.\n\n")
	r.whoIsWho(&b)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (r *callbackResults) targets(b *strings.Builder) {
	k := r.kept[neapCallback]
	fmt.Fprintf(b, "## What neap set itself\n\n- round trips of a delivery %.3g, to be %d, and of a replayed one %.3g, to be %d: %s\n",
		k.first, targetHandled, k.replay, targetReplayed, holds(k.first == targetHandled && k.replay == targetReplayed))
	for _, what := range []struct {
		name   string
		figure func(int) func(turn) float64
	}{{"first", firsts}, {"replayed", replays}} {
		for _, n := range r.crowds {
			rate, ratio := over(r.measured[neapCallback], what.figure(n)), r.beside(neapCallback, bareCallback, what.figure(n))
			fmt.Fprintf(b, "- %s, %d at once: %.0f a second, to be at least %d: %s; that is %.2f (%.2f–%.2f) of the handler alone\n",
				what.name, n, rate.median, targetDeliveries, holds(rate.median >= targetDeliveries), ratio.median, ratio.low, ratio.high)
		}
	}
	b.WriteString("\n")
}
