package stock

import (
	"time"

	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/script"
)

const (
	defaultLease = 30 * time.Second

	// MaxUnits is the largest number of units of an item, in all.
	MaxUnits = 1_000_000_000_000

	longest = 366 * 24 * time.Hour // of an item
)

// Options are the options of a Stock. The zero value is ready to use. New copies it.
// Stocks with the same name and prefix should have the same Options.
type Options struct {
	// Budget is the most time that one call to Redis takes, whatever the client's own
	// time-outs are: a millisecond to an hour. 0 means the store's budget, or else
	// script.DefaultBudget, 250 ms. It is never more than a third of Lease. A call may
	// take longer until a server has first answered, up to the store's FirstContact. While
	// the process is short of CPU it may take up to a second longer.
	Budget time.Duration
	// Lease is how long a reservation lasts if it is neither confirmed nor renewed:
	// 50 ms to 24 h. 0 means 30 s. If processes use different leases, the
	// units of a short lease may return only with those of a longer one that was made
	// before it.
	Lease time.Duration
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
	own.Budget = min(own.Budget, own.Lease/lease.Renewals)
	return own, c.Err()
}

// ReserveOptions are the options of one reservation. The zero value, and nil, mean one
// unit on a lease.
type ReserveOptions struct {
	// Quantity is the number of units: 1 to MaxUnits. 0 means 1.
	Quantity int64
	// Confirm sells the units immediately, without a lease. That costs one round trip in
	// all, and another to cancel.
	Confirm bool
	// Renew renews the lease each time that a third of it has passed, until the
	// reservation is confirmed, cancelled or lost, or a Confirm has failed in the
	// background. Without Renew the reservation lapses even while its process lives.
	Renew bool
	// Keep holds the units for a payment that another process may be notified of. That
	// process confirms or cancels what Resume returns.
	//
	// Keep overrides Renew: the lease is not renewed. This process does not watch the
	// lease either. So Err does not know when it ends, and neither Stats nor the
	// observers of the store report it. Units that are sold immediately need no Keep.
	Keep bool
}
