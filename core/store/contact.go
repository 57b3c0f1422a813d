package store

import (
	"sync/atomic"
	"time"
)

// DefaultFirstContact is how long the first calls may take if Options.FirstContact
// is 0.
const DefaultFirstContact = time.Second

// contact is the time that the first calls have: to connect on a busy machine takes
// longer than a decision may, and what is decided without Redis meanwhile is decided
// by each process on its own.
type contact struct {
	most  time.Duration
	since atomic.Int64 // when the first call began, in nanoseconds; 0 before
}

// left is for how long after now a node that never answered is waited for.
func (c *contact) left() time.Duration {
	now := time.Now().UnixNano()
	if !c.since.CompareAndSwap(0, now) {
		now -= c.since.Load()
		return c.most - time.Duration(now)
	}
	return c.most
}

// budget is how long a call to the node may take.
func (c *contact) budget(n *node, own time.Duration) time.Duration {
	if n.met.Load() {
		return own
	}
	return max(own, c.left())
}
