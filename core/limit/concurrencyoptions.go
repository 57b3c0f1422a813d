package limit

import (
	"errors"
	"time"

	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/store"
)

const (
	// DefaultLease is how long a slot outlives the process that holds it where
	// ConcurrencyOptions.Lease is 0.
	DefaultLease = 30 * time.Second

	minLease = 10 * time.Millisecond
	maxLease = 24 * time.Hour
)

// ConcurrencyOptions are the options of a [Concurrency]. The zero value is
// ready to use; it is copied by the constructor. One that is local has no use
// for Budget, Lease and Fail.
type ConcurrencyOptions struct {
	// Budget is that of [Options]. When Redis has lost slots, each further call of
	// a Try has a Budget of its own.
	Budget time.Duration
	// Lease is how long a slot outlives the process that holds it: 10 ms to 24 h;
	// 0 means DefaultLease. A fraction of a millisecond is dropped. It is renewed
	// three times in that time, and so should be many times the Budget. Slots of
	// different leases are counted apart, so a change starts all over.
	Lease time.Duration
	// Fail is how to decide when Redis cannot; the zero value is FailLocal,
	// which counts the slots that this process holds, those that Redis granted
	// among them. What is in flight when Redis answers again soon counts there.
	// Each process then admits up to the whole limit: the Instances of a Limiter's Options divide no
	// limit on requests in flight.
	Fail FailMode
	// Observer, if set, is told of every Try, beside the observers of the store.
	Observer store.Observer
}

func (o *ConcurrencyOptions) withDefaults(st *store.Store) (ConcurrencyOptions, error) {
	var own ConcurrencyOptions
	if o != nil {
		own = *o
	}
	var c options.Check
	c.Duration("Budget", &own.Budget, time.Millisecond, time.Hour, st.Budget(DefaultBudget))
	c.Milliseconds("Lease", &own.Lease, minLease, maxLease, DefaultLease)
	return own, errors.Join(c.Err(), own.Fail.check())
}
