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
	clock

	most  time.Duration
	since atomic.Int64 // when the first call began; 0 before
}

// budget is how long a call to the node may take, if it has that budget by itself.
func (c *contact) budget(n *node, own time.Duration) time.Duration {
	if n.met.Load() {
		return own
	}
	now := c.now()
	c.since.CompareAndSwap(0, now)
	return max(own, c.most-time.Duration(now-c.since.Load()))
}
