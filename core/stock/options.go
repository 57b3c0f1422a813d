package stock

import (
	"time"

	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// The defaults of Options, and the range of a lease.
const (
	DefaultLease = 30 * time.Second
	MinLease     = 50 * time.Millisecond
	MaxLease     = 24 * time.Hour

	// MaxUnits is how many units of an item there may be in all.
	MaxUnits = 1_000_000_000_000

	longest = 366 * 24 * time.Hour // of an item
)

// Options are a Stock's options. The zero value is ready to use; it is copied by
// New. Stocks of one name and prefix should have the same.
type Options struct {
	// Budget is the most time that one call to Redis takes, whatever the client's
	// own timeouts are. It is never more than a third of Lease. A millisecond to an
	// hour; 0 means the store's, or script.DefaultBudget, 250 ms.
	// Only until a server has first answered may a call take longer: the store's FirstContact.
	Budget time.Duration
	// Lease is how long a reservation lasts if it is neither confirmed nor renewed:
	// MinLease to MaxLease; 0 means DefaultLease. If processes use different leases,
	// the units of a short one may return as late as those of a longer one that was
	// made before it.
	Lease time.Duration
}

// withDefaults is a checked copy of the options with the defaults filled in.
func (o *Options) withDefaults(st *store.Store) (Options, error) {
	var own Options
	if o != nil {
		own = *o
	}
	var c options.Check
	c.Duration("Budget", &own.Budget, time.Millisecond, time.Hour, st.Budget(script.DefaultBudget))
	c.Milliseconds("Lease", &own.Lease, MinLease, MaxLease, DefaultLease)
	own.Budget = min(own.Budget, own.Lease/lease.Renewals)
	return own, c.Err()
}

// ReserveOptions are those of one reservation. The zero value, and nil, mean one unit on
// a lease.
type ReserveOptions struct {
	// Quantity is the number of units; 0 means 1, and the most is MaxUnits.
	Quantity int64
	// Confirm sells the units immediately, without a lease: one round trip in all, and
	// another to cancel.
	Confirm bool
	// Renew renews the lease, each time that a third of it has passed, until the
	// reservation is confirmed, cancelled or lost. Without Renew the reservation lapses
	// although its process lives.
	Renew bool
	// Keep holds the units for a payment, which another process may be told of: that one
	// confirms or cancels what Resume returns. The lease is not renewed, also if Renew is
	// set, and this process does not watch it: Err does not know of its end, Stats and
	// the observers of the store are not told of it. Units that are sold need no Keep.
	Keep bool
}
