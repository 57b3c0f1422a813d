package idempotency

import (
	"slices"
	"time"

	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/script"
)

const (
	defaultLease          = 30 * time.Second
	defaultRetention      = 24 * time.Hour
	defaultDoubtRetention = 30 * 24 * time.Hour
	defaultWait           = 10 * time.Second
	defaultRetryDelay     = 100 * time.Millisecond

	minRetention = time.Second
	maxRetention = 366 * 24 * time.Hour
)

// Options are the options of a Guard. The zero value is ready to use. New copies them. Guards
// with the same name and prefix should have the same Options and the same [Policy], which is
// an argument of New.
type Options struct {
	// EncryptionKeys, if there are any, encrypt the results. The first key encrypts, and
	// each of them decrypts. A result is [ErrUnreadable] if its key is gone, or if it was
	// stored before there were any.
	EncryptionKeys []EncryptionKey

	// Budget is the most time that one call to Redis takes, whatever the client's own
	// time-outs are: a millisecond to an hour. 0 means the store's budget, or else
	// script.DefaultBudget, 250 ms. It is never more than a third of Lease. A call may
	// take longer until a server has first answered, up to the store's FirstContact. While
	// the process is short of CPU it may take up to a second longer.
	Budget time.Duration
	// Lease is how long a claim outlives its process if the process disappears: 50 ms
	// to 24 h. 0 means 30 s. neap renews a lease when a third of it has
	// passed, so a run may take longer.
	Lease time.Duration
	// Retention is how long a result is remembered: a second to a year (366 days), and no
	// less than Lease. 0 means 24 h. A repetition that comes later runs
	// again. So choose a time after which no client repeats. With Retry, a run that its
	// process did not conclude is remembered for as long.
	Retention time.Duration
	// DoubtRetention is how long work in doubt is remembered. With Reject and Reconcile
	// it is also how long work that has begun is remembered. It is no less than
	// Retention, and a year (366 days) at most. 0 means 30 days, or
	// Retention if that is longer.
	DoubtRetention time.Duration

	// Wait is how long Await and Do wait for the run of another caller: a millisecond to
	// 24 h. 0 means 10 s. gate.Idempotent does not use it: see the Wait of its
	// options.
	Wait time.Duration
	// RetryDelay is the longest time between two calls to Redis by a caller that waits:
	// 5 ms to 24 h. 0 means 100 ms. In each process one caller asks
	// for all that wait for a key.
	RetryDelay time.Duration
}

// withDefaults returns a checked copy of the options with the defaults filled in.
func (o *Options) withDefaults(in inside.Store) (Options, error) {
	var own Options
	if o != nil {
		own = *o
		own.EncryptionKeys = slices.Clone(o.EncryptionKeys)
	}
	var c options.Check
	c.Duration("Budget", &own.Budget, time.Millisecond, time.Hour, in.Budget(script.DefaultBudget))
	c.Milliseconds("Lease", &own.Lease, options.MinLease, options.MaxLease, defaultLease)
	c.Milliseconds("Retention", &own.Retention, minRetention, maxRetention, defaultRetention)
	c.Milliseconds("DoubtRetention", &own.DoubtRetention, minRetention, maxRetention, max(defaultDoubtRetention, own.Retention))
	c.Duration("Wait", &own.Wait, time.Millisecond, options.MaxLease, defaultWait)
	c.Duration("RetryDelay", &own.RetryDelay, options.MinRetryDelay, options.MaxLease, defaultRetryDelay)
	if own.Retention < own.Lease {
		c.Faultf("Retention is %v: use at least the Lease, %v", own.Retention, own.Lease)
	}
	if own.DoubtRetention < own.Retention {
		c.Faultf("DoubtRetention is %v: use at least the Retention, %v", own.DoubtRetention, own.Retention)
	}
	own.Budget = min(own.Budget, own.Lease/lease.Renewals)
	return own, c.Err()
}
