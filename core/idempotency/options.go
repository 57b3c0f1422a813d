package idempotency

import (
	"context"
	"slices"
	"time"

	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// These are the defaults of Options, and the range of a lease.
const (
	DefaultLease          = 30 * time.Second
	DefaultRetention      = 24 * time.Hour
	DefaultDoubtRetention = 30 * 24 * time.Hour
	DefaultWait           = 10 * time.Second
	DefaultRetryDelay     = 100 * time.Millisecond

	MinLease      = 50 * time.Millisecond
	MaxLease      = 24 * time.Hour
	MinRetryDelay = 5 * time.Millisecond

	minRetention = time.Second
	maxRetention = 366 * 24 * time.Hour
)

// InDoubt says what to do with a run if it is not known how far it came: its process is
// gone, or it ended with [Unknown].
type InDoubt uint8

const (
	// Retry runs the work again. Claim.Attempt is then above 1. It suits work that does
	// nothing a second time, such as what one transaction does under a unique key.
	Retry InDoubt = iota + 1
	// Reject refuses the work with [ErrInDoubt] until [Guard.Resolve] was called, or
	// until DoubtRetention has passed.
	Reject
	// Reconcile asks Options.Reconcile what became of the run.
	Reconcile
)

var policies = map[InDoubt]string{Retry: "retry", Reject: "reject", Reconcile: "reconcile"}

// Options are the options of a Guard. InDoubt must be set. New copies them. Guards with the
// same name and prefix should have the same Options.
type Options struct {
	// Keys, if there are any, encrypt the results. The first key encrypts, and each of
	// them decrypts. A result is [ErrUnreadable] if its key is gone, or if it was stored
	// before there were Keys.
	Keys []Key

	// Budget is the most time that one call to Redis takes, whatever the client's own
	// time-outs are: a millisecond to an hour. 0 means the store's budget, or else
	// script.DefaultBudget, 250 ms. It is never more than a third of Lease. A call may
	// take longer until a server has first answered, up to the store's FirstContact. While
	// the process is short of CPU it may take up to a second longer.
	Budget time.Duration
	// Lease is how long a claim outlives its process if the process disappears: MinLease
	// to MaxLease. 0 means DefaultLease. neap renews a lease when a third of it has
	// passed, so a run may take longer.
	Lease time.Duration
	// Retention is how long a result is remembered: a second to a year (366 days), and no
	// less than Lease. 0 means DefaultRetention. A repetition that comes later runs
	// again. So choose a time after which no client repeats. With Retry, a run that its
	// process did not conclude is remembered for as long.
	Retention time.Duration
	// DoubtRetention is how long work in doubt is remembered. With Reject and Reconcile
	// it is also how long work that has begun is remembered. It is no less than
	// Retention, and a year (366 days) at most. 0 means DefaultDoubtRetention, or
	// Retention if that is longer.
	DoubtRetention time.Duration

	// InDoubt says what to do about work that was begun and not concluded. There is no
	// default, because Retry may charge a customer twice, and the others need you.
	InDoubt InDoubt
	// Reconcile finds out what became of an earlier run, for example by asking the
	// payment provider, or the database in which the work was done. It gets the claim of
	// the caller and that claim's context, so no other caller asks at the same time. ctx
	// ends with the call, or when the claim is lost.
	//
	// If it returns [NothingDone], the caller does the work. If it returns [DoneWith] or
	// [DoneWithout], the run is concluded as if the earlier run had said so. If it
	// returns an error or [Unknown], the work stays in doubt, and the next caller asks
	// again. It must be safe for concurrent use, for different keys.
	Reconcile func(ctx context.Context, c *Claim) (Outcome, error)

	// Wait is how long Await and Do wait for the run of another caller: a millisecond to
	// 24 h. 0 means DefaultWait. gate.Idempotent does not use it: see the Wait of its
	// options.
	Wait time.Duration
	// RetryDelay is the longest time between two calls to Redis by a caller that waits:
	// MinRetryDelay to 24 h. 0 means DefaultRetryDelay. In each process one caller asks
	// for all that wait for a key.
	RetryDelay time.Duration
}

// withDefaults returns a checked copy of the options with the defaults filled in.
func (o *Options) withDefaults(st *store.Store) (Options, error) {
	var own Options
	if o != nil {
		own = *o
		own.Keys = slices.Clone(o.Keys)
	}
	var c options.Check
	c.Duration("Budget", &own.Budget, time.Millisecond, time.Hour, st.Budget(script.DefaultBudget))
	c.Milliseconds("Lease", &own.Lease, MinLease, MaxLease, DefaultLease)
	c.Milliseconds("Retention", &own.Retention, minRetention, maxRetention, DefaultRetention)
	c.Milliseconds("DoubtRetention", &own.DoubtRetention, minRetention, maxRetention, max(DefaultDoubtRetention, own.Retention))
	c.Duration("Wait", &own.Wait, time.Millisecond, MaxLease, DefaultWait)
	c.Duration("RetryDelay", &own.RetryDelay, MinRetryDelay, MaxLease, DefaultRetryDelay)
	if own.Retention < own.Lease {
		c.Faultf("Retention is %v: use at least the Lease, %v", own.Retention, own.Lease)
	}
	if own.DoubtRetention < own.Retention {
		c.Faultf("DoubtRetention is %v: use at least the Retention, %v", own.DoubtRetention, own.Retention)
	}
	if own.InDoubt == 0 {
		c.Faultf("InDoubt is not set: if it is not known whether a run was done, Retry runs it again, Reject refuses it until you call Resolve, and Reconcile asks Options.Reconcile; use one of them")
	} else if _, ok := policies[own.InDoubt]; !ok {
		c.Faultf("InDoubt is %d: use Retry, Reject or Reconcile", own.InDoubt)
	}
	if (own.InDoubt == Reconcile) != (own.Reconcile != nil) {
		c.Faultf("InDoubt and Reconcile go together: set both, with InDoubt: idempotency.Reconcile, or neither")
	}
	own.Budget = min(own.Budget, own.Lease/lease.Renewals)
	return own, c.Err()
}
