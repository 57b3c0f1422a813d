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

// What Options mean where they say 0, and the range of a lease.
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

// InDoubt is what to do about a run of which nobody knows how far it came: its
// process is gone, or it ended with [Unknown].
type InDoubt uint8

const (
	// Retry runs it again, and Claim.Attempt says so.
	Retry InDoubt = iota
	// Reject refuses it with [ErrInDoubt] until [Guard.Resolve], or until
	// DoubtRetention has passed.
	Reject
	// Reconcile asks Options.Reconcile what became of it.
	Reconcile
)

var policies = map[InDoubt]string{Retry: "retry", Reject: "reject", Reconcile: "reconcile"}

// Options are a Guard's options. The zero value is ready to use; it is copied by
// New. Guards of one name and prefix should have the same.
type Options struct {
	// Keys, when set, encrypt the results: the first those that are stored from
	// now on, any of them those that are read. A result whose key is gone, or
	// that was stored before there were Keys, cannot be read and counts as one
	// that was not kept.
	Keys []Key

	// Budget is the most time that one question to Redis takes, whatever the
	// client's own timeouts are, but never more than a third of Lease. A
	// millisecond to an hour; 0 means the store's, or script.DefaultBudget, 250 ms.
	// Until a server has first answered, a question may take the store's FirstContact.
	Budget time.Duration
	// Lease is how long a run outlives a process that is gone: MinLease to
	// MaxLease, 0 means DefaultLease. It is renewed when a third of it has
	// passed, so it has nothing to do with how long a run takes.
	Lease time.Duration
	// Retention is for how long a result is remembered, a second to a year and
	// no less than Lease; 0 means DefaultRetention. A repetition that comes
	// later runs again, so it has to be longer than anybody repeats. With Retry
	// it is also for how long a run that its process did not end is remembered.
	Retention time.Duration
	// DoubtRetention is the same for what is in doubt, and with Reject and
	// Reconcile for what may come to be, and no less; 0 means
	// DefaultDoubtRetention, or Retention where that is longer.
	DoubtRetention time.Duration

	// InDoubt is what to do about a run that was begun and not ended; the zero
	// value is Retry.
	InDoubt InDoubt
	// Reconcile finds out what became of an earlier run, by the books of
	// whoever did the work: a payment provider, a database. It is called with
	// the claim of the run that asks, whose context it gets, so that nobody else
	// asks at the same time; ctx ends with the call, and when that claim is
	// lost. [NothingDone] has the run go ahead; [DoneWith] and [DoneWithout] end
	// it as if the earlier run had said so; an error or [Unknown] leaves it in
	// doubt, and the next one asks again. It is called by many goroutines at
	// once, for different keys.
	Reconcile func(ctx context.Context, c *Claim) (Outcome, error)

	// Wait is how long Await and Do wait for a run that somebody else has begun,
	// a millisecond to 24 h; 0 means DefaultWait.
	Wait time.Duration
	// RetryDelay is the longest time between two questions of who waits,
	// MinRetryDelay to 24 h; 0 means DefaultRetryDelay. One caller of a process
	// asks for all that wait for a key.
	RetryDelay time.Duration
}

// withDefaults is a checked copy of the options with the defaults filled in.
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
		c.Fault("Retention is %v: use at least the Lease, %v", own.Retention, own.Lease)
	}
	if own.DoubtRetention < own.Retention {
		c.Fault("DoubtRetention is %v: use at least the Retention, %v", own.DoubtRetention, own.Retention)
	}
	if _, ok := policies[own.InDoubt]; !ok {
		c.Fault("InDoubt is %d: use Retry, Reject or Reconcile", own.InDoubt)
	}
	if (own.InDoubt == Reconcile) != (own.Reconcile != nil) {
		c.Fault("InDoubt and Reconcile go together: set both, with InDoubt: idempotency.Reconcile, or neither")
	}
	own.Budget = min(own.Budget, own.Lease/lease.Renewals)
	return own, c.Err()
}
