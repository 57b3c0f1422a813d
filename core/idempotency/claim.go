package idempotency

import (
	"context"
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/store"
)

// Claim is the right to run what a key stands for. It is renewed by itself until
// it is concluded. It is safe for concurrent use. The zero Claim is not usable.
type Claim struct {
	of *Guard
	question
	fence   int64
	attempt int64
	given   context.Context    // of Begin: its values go with a loss
	parent  context.Context    // of Context; Detach replaces it
	release context.CancelFunc // of parent's deadline; nil if it has none
	lease   lease.Lease

	conclusion sync.Once
	lost       bool // before the conclusion
	outcome    error
}

func (g *Guard) claim(ctx context.Context, q *question, r record, asked time.Time) (Run, error) {
	c := &Claim{of: g, question: *q, fence: r.fence, attempt: r.attempt, given: ctx, parent: ctx}
	q.doubt = ask.Doubt{} // the claim takes care of it
	if !c.lease.Begin((*holding)(c), &g.terms, asked, g.opts.Lease) {
		_ = c.Conclude(ctx, Outcome{state: undone})
		return Run{}, ErrExpired
	}
	if r.state == asking {
		return g.reconcile(c)
	}
	return Run{Claim: c}, nil
}

// Key is the key that was given to Begin.
func (c *Claim) Key() string {
	misuse.Made(c.made(), errClaim)
	return c.key
}

// Fence returns the fencing number, which grows with each claim of the key, even if
// the record was deleted or forgotten in between, unless the clock of Redis, or of a new
// primary, is set back before the last claim. A database that rejects numbers smaller
// than the largest it has seen rejects writes from a stale holder.
func (c *Claim) Fence() int64 {
	misuse.Made(c.made(), errClaim)
	return c.fence
}

// Attempt says how many times the work was begun, this time included. Above 1, an
// earlier run said that it had done nothing, or it did not end, and how far it came is
// not known. It counts for as long as the record is remembered.
func (c *Claim) Attempt() int64 {
	misuse.Made(c.made(), errClaim)
	return c.attempt
}

// Err returns nil while the claim lasts and [ErrConcluded] once it was concluded.
// Otherwise it says how the claim was lost: [ErrExpired] or [ErrLost]. It compares
// clocks and sends nothing, so it is right immediately after the process was paused. A
// claim that was taken over or deleted is found lost after a third of the lease and
// the budget.
func (c *Claim) Err() error {
	if !c.made() {
		return errClaim
	}
	return c.lease.Err()
}

func (c *Claim) made() bool { return c != nil && c.of != nil }

// Context returns a child of the context that was given to Begin. It ends when the
// claim is lost or concluded, and its cause is what Err returns.
func (c *Claim) Context() context.Context {
	misuse.Made(c.made(), errClaim)
	return c.lease.Context()
}

// Detach lets Context outlive the context that was given to Begin: it keeps only the
// values and the deadline of that context. Call it before Context.
func (c *Claim) Detach() {
	misuse.Made(c.made(), errClaim)
	deadline, ok := c.parent.Deadline()
	c.parent = context.WithoutCancel(c.parent)
	if ok {
		c.parent, c.release = context.WithDeadline(c.parent, deadline)
	}
}

// By reports whether g has given the claim out.
func (c *Claim) By(g *Guard) bool {
	misuse.Made(c.made(), errClaim)
	return g != nil && c.of.shared == g.shared
}

type contextKey struct{}

// FromContext returns the claim whose context ctx descends from: that of [Guard.Do] or
// of a gate.
func FromContext(ctx context.Context) (*Claim, bool) {
	misuse.Context(ctx)
	c, ok := ctx.Value(contextKey{}).(*Claim)
	return c, ok
}

// Renew prolongs the lease to Options.Lease from now, which also happens by itself. It
// costs one round trip. It returns what Err returns if the claim is lost or concluded,
// ctx.Err(), or a [*script.Error] if Redis could not answer; Err is still right then.
func (c *Claim) Renew(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err
	}
	return c.lease.Extend(ctx, c.of.opts.Lease)
}

// Complete is Conclude of [DoneWith].
func (c *Claim) Complete(ctx context.Context, result []byte) error {
	return c.Conclude(ctx, DoneWith(result))
}

// Abandon is Conclude of [NothingDone]. A run that another has found to be in
// doubt meanwhile stays so, and the error is nil.
func (c *Claim) Abandon(ctx context.Context) error { return c.Conclude(ctx, NothingDone()) }

// holding is a Claim as its lease sees it.
type holding Claim

func (h *holding) Parent() context.Context {
	return context.WithValue(h.parent, contextKey{}, (*Claim)(h))
}

func (h *holding) Held() { h.of.count.running.Add(1) }

func (h *holding) Lost() {
	h.of.count.running.Add(-1)
	h.of.count.lost.Add(1)
	if h.of.store.Observed() {
		go h.of.notify(context.WithoutCancel(h.given), store.Lost) // Lost is called under the lease's mutex
	}
}

func (h *holding) Renew(ctx context.Context, ttl time.Duration) (left time.Duration, since time.Time, lost, err error) {
	reply, since, _, err := h.of.asker.Ask(ctx, renewScript, h.record, h.owner, milliseconds(ttl), h.of.keep)
	if err != nil {
		return 0, since, nil, err
	}
	switch n, ok := reply.(int64); {
	case !ok:
		return 0, since, nil, broken(renewScript)
	case n > 0:
		return ttl, since, nil, nil
	case n == finished:
		return 0, since, ErrConcluded, nil
	}
	return 0, since, ErrLost, nil
}
