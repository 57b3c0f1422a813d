package idempotency

import (
	"context"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/script"
)

// FailMode says what a Guard does while Redis cannot answer. The zero value is FailClosed.
type FailMode uint8

const (
	// FailClosed runs nothing: Begin, BeginAny, Await and Do return the error.
	FailClosed FailMode = iota
	// RunUnguarded runs the work although Redis cannot say whether it was done before, or
	// whether another caller does it now. It is for work that closes the gap by itself, for
	// example with a unique key in the database. [Guard.WithFail] says what it costs.
	RunUnguarded
)

// WithFail returns a Guard that shares everything with g, except that its Begin, BeginAny,
// Await and Do follow mode while Redis cannot answer. It returns an error for an unknown
// mode.
//
// With RunUnguarded they return, when the error would have come, a claim that is not in
// Redis. [Claim.Unguarded] returns why. The same work may have been done before, other
// callers may do it at the same time, and the fingerprint was not compared. The claim has
// the fence 0 and the attempt 0. It is not renewed, is not lost to another caller, and
// ends a day after it began.
//
// Its conclusion is that of any claim: if Redis does not confirm it, neap repeats it in the
// background. While calls to Redis are held back, only the background tries. So after the
// outage a later caller finds the result, or no record, and then it runs. If Redis began
// the run and its answer was lost, a later caller gets [ErrInFlight] until the run is
// concluded. If neap repeats 1,000 other conclusions, it gives the claim back instead.
// [Unknown] leaves no doubt if Redis had no record: with Reject or Reconcile, Conclude then
// returns [ErrLost].
//
// These errors stay errors, because Redis has answered or the caller has gone:
// [script.ErrFailed], the end of the caller's context, and an outage that begins while
// Await waits for another caller.
func (g *Guard) WithFail(mode FailMode) (*Guard, error) {
	if !g.made() {
		return nil, errGuard
	}
	if mode > RunUnguarded {
		return nil, fmt.Errorf("idempotency.WithFail: the mode is %d: use FailClosed or RunUnguarded", mode)
	}
	return &Guard{shared: g.shared, wait: g.wait, fail: mode}, nil
}

// runs reports whether work is to run after this error of Redis.
func (g *Guard) runs(q *question, err error) bool {
	failure, is := err.(*script.Error) //nolint:errorlint // what wraps one is an answer of Reconcile.Find
	return g.fail == RunUnguarded && is && failure.Class != script.ErrFailed && !q.waited
}

// unguarded returns a claim that Redis has not granted. It takes care of what Redis may
// have granted all the same.
func (g *Guard) unguarded(ctx context.Context, q *question, why error) *Claim {
	c := &Claim{of: g, question: *q, parent: ctx, unguarded: why}
	g.count.unguarded.Add(1)
	c.lease.Begin((*holding)(c), &g.bare, time.Now(), options.MaxLease)
	return c
}

// bareTerms are the terms of claims that are not in Redis.
func bareTerms(w *lease.Wheel) lease.Terms {
	return lease.Terms{Wheel: w, Lease: options.MaxLease, NoRenewal: true, Expired: ErrExpired}
}

// Unguarded returns nil if Redis has granted the claim. Otherwise it returns why Redis
// could not answer; see [Guard.WithFail].
func (c *Claim) Unguarded() error {
	misuse.Made(c.made(), errClaim)
	return c.unguarded
}
