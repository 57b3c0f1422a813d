// Package decisions counts decisions by how they ended.
package decisions

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/store"
)

// Outcome is how a decision ended.
type Outcome uint8

// These are the outcomes.
const (
	Allowed Outcome = iota
	Denied
	Failed
	Canceled
)

// Of returns the outcome of a call.
func Of(granted bool, err error) Outcome {
	switch {
	case err == nil && granted:
		return Allowed
	case err == nil:
		return Denied
	case ask.IsCallers(err):
		return Canceled
	}
	return Failed
}

// Event returns the outcome as events have it.
func (o Outcome) Event() store.Outcome {
	return [...]store.Outcome{Allowed: store.Granted, Denied: store.Denied, Failed: store.Failed, Canceled: store.Canceled}[o]
}

// Counts are the counts behind Stats. The zero value is ready to use, by many goroutines at
// once.
type Counts struct {
	stripes  [8]stripe
	degraded atomic.Uint64
}

// stripe counts some of the decisions. Processors that count in different stripes seldom
// wait for each other.
type stripe struct {
	outcomes [4]atomic.Uint64
	_        [64 - 4*8]byte // 64 is the least size of a cache line
}

// Add counts a decision.
func (c *Counts) Add(o Outcome, degraded bool) {
	c.stripes[rand.Uint32()%uint32(len(c.stripes))].outcomes[o].Add(1)
	if degraded {
		c.degraded.Add(1)
	}
}

// Of returns how many decisions ended so.
func (c *Counts) Of(o Outcome) (n uint64) {
	for i := range c.stripes {
		n += c.stripes[i].outcomes[o].Load()
	}
	return n
}

// Degraded returns how many decisions were made without Redis.
func (c *Counts) Degraded() uint64 { return c.degraded.Load() }
