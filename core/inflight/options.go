package inflight

import (
	"errors"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/store"
)

const (
	defaultBudget = 50 * time.Millisecond
	defaultLease  = 30 * time.Second

	minLease = 10 * time.Millisecond
	maxLease = 24 * time.Hour
)

// Options are the options of a [Limiter]. The zero value is ready to use. The constructors
// copy it. A local Limiter ignores Budget, Lease and Fail.
type Options struct {
	// Budget is the most time that a Try takes, as store.Options describes it: a
	// millisecond to an hour. 0 means the store's Budget, or else 50 ms. If Redis
	// has lost slots, each further call of a Try has a Budget of its own.
	Budget time.Duration
	// Lease is how long a slot outlives the process that holds it: 10 ms to 24 h; 0 means
	// 30 s. A fraction of a millisecond is dropped. A lease is renewed three
	// times in its length, so it should be many times the Budget. Slots with different
	// leases are counted apart, so if you change the Lease, the count begins again at
	// zero.
	Lease time.Duration
	// Fail says how to decide when Redis cannot. The zero value is [store.FailLocal], which
	// counts the slots that this process holds, including those that Redis granted. When
	// Redis answers again, it soon counts the requests that are still in flight. Each
	// process admits up to the whole limit: limit.Options.Instances does not divide a
	// limit on requests in flight.
	Fail store.FailMode
}

func (o *Options) withDefaults(in inside.Store) (Options, error) {
	var own Options
	if o != nil {
		own = *o
	}
	var c options.Check
	c.Duration("Budget", &own.Budget, time.Millisecond, time.Hour, in.Budget(defaultBudget))
	c.Milliseconds("Lease", &own.Lease, minLease, maxLease, defaultLease)
	return own, errors.Join(c.Err(), ask.CheckFail(own.Fail))
}
