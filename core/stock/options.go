package stock

import (
	"time"

	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// What Options mean where they say 0, and the range of a lease.
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
	// Budget is the most time that one question to Redis takes, whatever the
	// client's own timeouts are, but never more than a third of Lease. A
	// millisecond to an hour; 0 means the store's, or script.DefaultBudget, 250 ms.
	// Until a server has first answered, a question may take the store's FirstContact.
	Budget time.Duration
	// Lease is how long a reservation lasts that is neither confirmed nor
	// renewed: MinLease to MaxLease, 0 means DefaultLease. Where two processes
	// differ, the units of a short one may come back as late as those of a long
	// one that was made before it.
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

// ReserveOptions are those of one reservation. The zero value, and nil, are a
// unit on a lease.
type ReserveOptions struct {
	// Quantity is how many units it is; 0 means 1, and the most is MaxUnits.
	Quantity int64
	// Confirm has them be sold at once, without a lease: one round trip in all,
	// and one more for what is cancelled.
	Confirm bool
	// Renew has the lease be renewed, each time that a third of it has passed,
	// until the reservation is confirmed, cancelled or lost. Without it a
	// reservation lapses though its process lives, which is what a shop wants
	// that waits for a payment.
	Renew bool
}
