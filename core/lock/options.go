package lock

import (
	"time"

	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/script"
)

const (
	defaultLease          = 30 * time.Second
	defaultWait           = 10 * time.Second
	defaultRetryDelay     = 200 * time.Millisecond
	defaultFenceRetention = 48 * time.Hour

	minFenceRetention = time.Minute
	maxFenceRetention = 366 * 24 * time.Hour
)

// Options are the options of a Locker. The zero value is ready to use. New copies it.
type Options struct {
	// Budget is the most time that one call to Redis takes, whatever the client's own
	// time-outs are: a millisecond to an hour. 0 means the store's budget, or else
	// script.DefaultBudget, 250 ms. It is never more than a third of Lease or MaxHold.
	//
	// A call may take longer until a server has first answered: up to the store's
	// FirstContact, even if Lease is shorter. While the process is short of CPU it may take
	// up to a second longer. The lease may then be over when the lock is granted, and the
	// call returns [ErrExpired].
	Budget time.Duration
	// Lease is how long a lock outlives its holder if the holder disappears: 50 ms to
	// 24 h. 0 means 30 s. neap renews a lease when a third of it has passed.
	Lease time.Duration
	// NoRenewal ends the lock when its lease is over, unless Extend prolongs it. If the
	// lock is lost earlier, only Extend and Release find out.
	NoRenewal bool
	// MaxHold is the longest time for which a lock is held, even if its holder is alive
	// but hangs. It is at least 50 ms; 0 means no limit.
	MaxHold time.Duration

	// Wait is how long Acquire waits for a lock that is held, and AcquireAll for all of
	// its locks: a millisecond to 24 h. 0 means 10 s. It is independent of the lease.
	Wait time.Duration
	// RetryDelay is the longest time between two calls to Redis by a caller that waits
	// for a lock of another process: 5 ms to 24 h. 0 means 200 ms.
	// The first in the queue asks again after half to all of it, and immediately when it
	// is woken.
	RetryDelay time.Duration

	// FenceRetention is how long Redis remembers the fence of a lock after its release: a
	// minute to a year (366 days). 0 means 48 h. It must be longer than
	// the server's clock may ever be set back. For that time a record takes some 180
	// bytes.
	//
	// Once refuses a tick that is longer ago than FenceRetention, and remembers for twice
	// as long which ticks have run. A change does not affect records that were written
	// before. So give all processes the same value. If you raise it, do not let Once run
	// ticks from before the change.
	FenceRetention time.Duration
}

// withDefaults returns a checked copy of the options with the defaults filled in.
func (o *Options) withDefaults(in inside.Store) (Options, error) {
	var own Options
	if o != nil {
		own = *o
	}
	var c options.Check
	c.Duration("Budget", &own.Budget, time.Millisecond, time.Hour, in.Budget(script.DefaultBudget))
	c.Milliseconds("Lease", &own.Lease, options.MinLease, options.MaxLease, defaultLease)
	c.Duration("Wait", &own.Wait, time.Millisecond, options.MaxLease, defaultWait)
	c.Duration("RetryDelay", &own.RetryDelay, options.MinRetryDelay, options.MaxLease, defaultRetryDelay)
	c.Milliseconds("FenceRetention", &own.FenceRetention, minFenceRetention, maxFenceRetention, defaultFenceRetention)
	if own.MaxHold != 0 && own.MaxHold < options.MinLease {
		c.Faultf("MaxHold is %v: use %v or more, or 0 for no end", own.MaxHold, options.MinLease)
	}
	own.MaxHold = own.MaxHold.Truncate(time.Millisecond)
	own.Budget = min(own.Budget, own.Lease/lease.Renewals)
	if own.MaxHold > 0 {
		own.Budget = min(own.Budget, own.MaxHold/lease.Renewals)
	}
	return own, c.Err()
}
