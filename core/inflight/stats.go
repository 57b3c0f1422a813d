package inflight

import (
	"github.com/neap-go/neap/core/internal/decisions"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/store"
)

// Stats count what a [Limiter] decided in this process since it was made.
// The counters are read one after the other, so they may differ by a call.
type Stats struct {
	Allowed  uint64 // granted, degraded decisions included
	Denied   uint64 // denied, degraded decisions included
	Failed   uint64 // Redis could not decide, and the mode is store.FailClosed
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

// Stats returns counts of what was decided in this process. It sends nothing, is safe for
// concurrent use, and panics on a nil or zero Limiter.
func (c *Limiter) Stats() Stats {
	misuse.Made(c.made(), errLimiter)
	u := c.undo.Stats()
	return Stats{
		Allowed: c.count.Of(decisions.Allowed), Denied: c.count.Of(decisions.Denied), Failed: c.count.Of(decisions.Failed),
		Canceled: c.count.Of(decisions.Canceled), Degraded: c.count.Degraded(),
		InFlight: c.held.size(),
		Undoing:  u.Pending, Undone: u.Undone, Lapsing: u.Overflowed,
		Open: c.lease != nil && c.lease.IsOpen(),
	}
}

// gauge returns what the store reports about c.
func (c *Limiter) gauge() store.Gauge {
	s := c.Stats()
	return store.Gauge{Primitive: store.InFlight, Name: c.name, Policies: []string{inflightPolicy}, Active: s.InFlight, Background: s.Undoing, Open: s.Open}
}
