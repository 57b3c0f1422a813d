package limit

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/store"
)

// Stats count what a limiter, and the limiters that With made from it, decided in this
// process since the limiter was made. The counters are read one after the other, so they
// may differ by a call.
type Stats struct {
	Allowed  uint64 // granted, degraded decisions included
	Denied   uint64 // denied, degraded decisions included
	Failed   uint64 // Redis could not decide, and the mode is FailClosed
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

// ConcurrencyStats count what a [Concurrency] decided in this process since it was made.
// The counters are read one after the other, so they may differ by a call.
type ConcurrencyStats struct {
	Allowed  uint64 // granted, degraded decisions included
	Denied   uint64 // denied, degraded decisions included
	Failed   uint64 // Redis could not decide, and the mode is FailClosed
	Canceled uint64 // the caller's context ended
	Degraded uint64 // decided without Redis
	// InFlight is how many slots this process holds now.
	InFlight int
	// Undoing is how many slots are being taken back in the background now: slots that
	// may have been granted although no reply came, and slots whose Release Redis did not
	// confirm. Undone is how many were taken back so far. Lapsing is how many were left
	// to lapse, because 100,000 were being taken back already.
	Undoing         int
	Undone, Lapsing uint64
	// Open reports whether calls are held back now, because Redis or a node of the
	// cluster did not answer other calls with this budget on the same store.
	Open bool
}

// counters are the counts behind Stats.
type counters struct {
	stripes            [8]stripe
	degraded, refunded atomic.Uint64
	settled            atomic.Uint64
	forgiven           atomic.Int64
	late, dropped      atomic.Uint64
	waiting            atomic.Int64
}

// stripe counts some of the decisions. Processors that count in different stripes seldom
// wait for each other.
type stripe struct {
	outcomes [4]atomic.Uint64
	_        [cacheLine - 4*8]byte
}

const cacheLine = 64

func (c *counters) add(o outcome, degraded bool) {
	c.stripes[rand.Uint32()%uint32(len(c.stripes))].outcomes[o].Add(1)
	if degraded {
		c.degraded.Add(1)
	}
}

func (c *counters) of(o outcome) (n uint64) {
	for i := range c.stripes {
		n += c.stripes[i].outcomes[o].Load()
	}
	return n
}

func (c *counters) stats() Stats {
	return Stats{
		Allowed:  c.of(allowed),
		Denied:   c.of(denied),
		Failed:   c.of(failed),
		Canceled: c.of(canceled),
		Degraded: c.degraded.Load(),
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
	s.LocalStates = l.local.size()
	s.Concluding = l.late.Stats().Pending
	s.Open = l.remote != nil && l.remote.open()
	return s
}

// gauge returns what the store reports about the limiter.
func (l *Limiter) gauge() store.Gauge {
	g := store.Gauge{Primitive: store.Limit, Name: l.name, Waiting: int(l.count.waiting.Load()), Background: l.late.Stats().Pending, Open: l.remote.open()}
	for _, r := range l.rules {
		g.Policies = append(g.Policies, r.id().name)
	}
	return g
}
