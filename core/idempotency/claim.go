package idempotency

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/store"
)

// Claim is the right to do the work behind a key. neap renews it until it is concluded.
// It is safe for concurrent use. The zero Claim is not usable.
type Claim struct {
	of *Guard
	question
	fence   int64
	attempt int64
	parent  context.Context // of Begin; its values go with an event about a loss
	lease   lease.Lease

	unguarded error // why Redis did not grant it, or nil

	conclusion sync.Once
	over       atomic.Pointer[error] // what Err returns since the conclusion began
	lost       bool                  // the claim was lost before the conclusion
	outcome    error
}

func (g *Guard) claim(ctx context.Context, q *question, r record, asked time.Time) (Answer, error) {
	c := &Claim{of: g, question: *q, fence: r.fence, attempt: r.attempt, parent: ctx}
	q.doubt = ask.Doubt{} // the claim takes care of it now
	if !c.lease.Begin((*holding)(c), &g.terms, asked, g.opts.Lease) {
		_ = c.Conclude(ctx, Outcome{state: undone})
		return Answer{}, ErrExpired
	}
	if r.state == asking {
		return g.reconcile(c)
	}
	return Answer{Claim: c}, nil
}

// Key returns the key that was given to Begin.
func (c *Claim) Key() string {
	misuse.Made(c.made(), errClaim)
	return c.key
}

// Fence returns the fencing number of the claim. It grows with each claim of the key,
// even if the record was deleted or forgotten in between. The exception is a clock of
// Redis, or of a new primary, that is set back before the last claim. A database that
// rejects numbers smaller than the largest it has seen rejects writes from a stale
// holder. Fence sends nothing.
func (c *Claim) Fence() int64 {
	misuse.Made(c.made(), errClaim)
	return c.fence
}

// Attempt returns how many claims of the key there were, this one included. If it is above
// 1, an earlier run said that it had done nothing, failed, or did not end. How far that one
// came is not known. A claim with which [Reconcile] only asked counts too. Attempt counts
// for as long as the record is remembered.
func (c *Claim) Attempt() int64 {
	misuse.Made(c.made(), errClaim)
	return c.attempt
}

// Err returns nil while the claim lasts, and [ErrConcluded] once it was concluded, also if it
// was lost before. Otherwise it says how the claim was lost: [ErrExpired] or [ErrLost].
//
// Err compares clocks and sends nothing, so it is right immediately after the process was
// paused. If the claim was taken over or deleted, a renewal finds out within a third of
// the lease plus the budget.
func (c *Claim) Err() error {
	if !c.made() {
		return errClaim
	}
	if over := c.over.Load(); over != nil {
		return *over
	}
	return c.lease.Err()
}

func (c *Claim) made() bool { return c != nil && c.of != nil }

// Context returns a child of the context that was given to Begin. It ends when the
// claim is lost or concluded, and its cause is what Err returns at that moment.
func (c *Claim) Context() context.Context {
	misuse.Made(c.made(), errClaim)
	return c.lease.Context()
}

// Detached returns a context as Context does, for work that must not end with its caller:
// of the context that was given to Begin, it has only the values and the deadline. Each call
// returns the same context. You may use it beside that of Context. Context and Detached are
// safe for concurrent use, and panic on a nil or zero Claim.
func (c *Claim) Detached() context.Context {
	misuse.Made(c.made(), errClaim)
	return c.lease.Detached()
}

// By reports whether g, or a Guard that shares its records in this process through
// [Guard.WithWait] or [Guard.WithFail], has given the claim out.
func (c *Claim) By(g *Guard) bool {
	misuse.Made(c.made(), errClaim)
	return g != nil && c.of.shared == g.shared
}

type contextKey struct{}

// FromContext returns the claim that ctx belongs to, and false if there is none. ctx is,
// or descends from, the context that [Guard.Do] or a gate passes to its function, or that
// of [Claim.Context] or [Claim.Detached].
func FromContext(ctx context.Context) (*Claim, bool) {
	misuse.Context(ctx)
	c, ok := ctx.Value(contextKey{}).(*Claim)
	return c, ok
}

// Renew prolongs the lease to Options.Lease from now. neap does that by itself, so you
// rarely need it. It costs one round trip, and does nothing for a claim that is
// [Claim.Unguarded].
//
// Renew returns what Err returns if the claim is lost or concluded, ctx.Err() if the
// caller's context ended, or a [*script.Error] if Redis could not answer. Err is still
// right then.
func (c *Claim) Renew(ctx context.Context) error {
	if err := c.Err(); err != nil || c.unguarded != nil {
		return err
	}
	return c.lease.Extend(ctx, c.of.opts.Lease)
}

// holding is a Claim seen by its lease.
type holding Claim

func (h *holding) Key() string { return h.record }

func (h *holding) Parent() context.Context {
	return context.WithValue(h.parent, contextKey{}, (*Claim)(h))
}

func (h *holding) Held() { h.of.count.running.Add(1) }

func (h *holding) Lost() {
	h.of.count.running.Add(-1)
	h.of.count.lost.Add(1)
	if h.of.store.Observed() {
		background.Go(func() { h.of.notify(context.WithoutCancel(h.parent), store.Lost) }) // Lost is called under the lease's mutex
	}
}

func (h *holding) Renew(ctx context.Context, ttl time.Duration) (left time.Duration, since time.Time, lost, err error) {
	reply, since, _, err := h.of.asker.Ask(ctx, renewScript, h.record, h.owner, milliseconds(ttl), h.of.keep)
	switch {
	case err != nil:
		return 0, since, nil, err
	case reply == int64(1):
		return ttl, since, nil, nil
	case reply == int64(finished):
		return 0, since, ErrConcluded, nil
	}
	return 0, since, ErrLost, nil
}
