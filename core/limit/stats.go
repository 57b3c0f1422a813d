package limit

import (
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/decisions"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/store"
)

// Stats count what a limiter, and the limiters that With made from it, decided in this
// process since the limiter was made. The counters are read one after the other, so they
// may differ by a call.
type Stats struct {
	Allowed  uint64 // granted, degraded decisions included
	Denied   uint64 // denied, degraded decisions included
	Failed   uint64 // Redis could not decide, and the mode is store.FailClosed
	Canceled uint64 // the caller's context ended
	Degraded uint64 // decided without Redis
	Refunded uint64 // decisions whose permits were given back
	Settled  uint64 // decisions that were settled
	Forgiven int64  // permits beyond MaxDebt that a Settle did not charge
	// Concluding is how many settlements and refunds are repeated in the background now,
	// because Redis did not confirm them. Concluded is how many were confirmed late, and
	// Dropped is how many were given up ([DroppedError]).
	Concluding         int
	Concluded, Dropped uint64
	// Waiting is how many callers are in Wait now.
	Waiting int
	// LocalStates is how many states of policies this process keeps now, without bans.
	LocalStates int
	// Open reports whether calls are held back now, because Redis or a node of the
	// cluster did not answer other calls with this budget on the same store.
	Open bool
}

// counters are the counts behind Stats.
type counters struct {
	decisions.Counts

	refunded, settled atomic.Uint64
	forgiven          atomic.Int64
	late, dropped     atomic.Uint64
	waiting           atomic.Int64
}

func (c *counters) stats() Stats {
	return Stats{
		Allowed:  c.Of(decisions.Allowed),
		Denied:   c.Of(decisions.Denied),
		Failed:   c.Of(decisions.Failed),
		Canceled: c.Of(decisions.Canceled),
		Degraded: c.Degraded(),
		Refunded: c.refunded.Load(),
		Settled:  c.settled.Load(),
		Forgiven: c.forgiven.Load(),

		Concluded: c.late.Load(),
		Dropped:   c.dropped.Load(),
		Waiting:   int(c.waiting.Load()),
	}
}

// Stats returns counts of what this limiter, and all limiters that With has made from the
// same one, decided in this process. It sends nothing, is safe for concurrent use, and
// panics on a nil or zero Limiter.
func (l *Limiter) Stats() Stats {
	misuse.Made(l.made(), errLimiter)
	s := l.count.stats()
	s.LocalStates = l.local.Len()
	s.Concluding = l.late.Stats().Pending
	s.Open = l.remote != nil && l.remote.IsOpen()
	return s
}

// gauge returns what the store reports about the limiter.
func (l *Limiter) gauge() store.Gauge {
	g := store.Gauge{Primitive: store.Limit, Name: l.name, Waiting: int(l.count.waiting.Load()), Background: l.late.Stats().Pending, Open: l.remote.IsOpen()}
	for _, r := range l.set.Rules {
		g.Policies = append(g.Policies, r.Name)
	}
	return g
}
