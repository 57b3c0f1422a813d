package limit

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
)

// Slot is the answer to one Try. Its Policy is "inflight" and its
// RetryAfter, of a denied one, a second; it has no ResetAfter and no States,
// since when those in flight will end is not known.
type Slot struct {
	Decision

	of           *Concurrency
	key, subject string

	// What follows is guarded by the mutex of of.held; the token does not change.
	token    string    // the lease's; empty if Redis need not count the slot
	at       int       // among the slots of the subject
	counted  bool      // Redis has it, as far as is known
	maybe    bool      // Redis may have it nonetheless
	doubt    ask.Doubt // calls without an answer that may still take the slot
	released bool
	timer    *time.Timer
}

// Release gives the slot back. You may call it any number of times, also
// concurrently, and on a nil or denied Slot; only the first call does anything. It uses
// only the values of ctx: it ends within the budget, and not with ctx.
//
// The error is a [*script.Error] when Redis did not confirm it: the slot is
// then given back in the background, which takes no longer than a lease.
func (s *Slot) Release(ctx context.Context) error {
	if s == nil || !s.Allowed || s.of == nil {
		return nil
	}
	misuse.Context(ctx)
	ctx = context.WithoutCancel(ctx)
	token, in, first := s.of.held.remove(s)
	if !first || token == "" {
		return nil
	}
	return s.of.giveBack(ctx, s.key, token, in)
}

func (c *Concurrency) giveBack(ctx context.Context, key, token string, in ask.Doubt) error {
	asked := time.Now()
	_, err := c.lease.release(ctx, key, token)
	switch {
	case err != nil:
		c.takeBack(key, token, ask.Doubt{Last: asked, Calls: 1 + in.Calls}, in.Calls == 0)
	case in.Calls > 0:
		c.takeBack(key, token, in, false)
	}
	return err
}

// renew runs on the timer. A renewal extends only what is there, so that one
// that arrives behind a Release changes nothing. What is not there is taken again
// under the same token.
func (s *Slot) renew() {
	c := s.of
	counted, released := c.held.look(s)
	if released {
		return
	}
	ctx := context.Background()
	var err error
	if counted {
		counted, err = c.lease.renew(ctx, s.key, s.token)
		if err == nil && !counted {
			c.held.gone(s)
		}
	}
	if err == nil && !counted {
		asked := time.Now()
		var denied bool
		_, denied, _, err = c.lease.acquire(ctx, s.key, s.token, witnesses{})
		c.learn(s, asked, err == nil && !denied, err)
	}
	c.held.again(s, lease.Pause(c.opts.Lease, err == nil))
}
