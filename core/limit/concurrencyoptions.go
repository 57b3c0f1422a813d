package limit

import (
	"errors"
	"fmt"
	"time"

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
	// Lease is how long a slot outlives the process that holds it, a whole
	// number of milliseconds from 10 ms to 24 h; 0 means DefaultLease. It is
	// renewed three times in that time, and so should be many times the Budget.
	// Changing it starts all over.
	Lease time.Duration
	// Fail is how to decide when Redis cannot; the zero value is FailLocal,
	// which counts the slots that this process holds, those that Redis granted
	// among them. What is in flight when Redis answers again soon counts there.
	Fail FailMode
	// Observer, if set, is told of every Try, beside the observers of the store.
	Observer store.Observer
}

func (o *ConcurrencyOptions) withDefaults(st *store.Store) (ConcurrencyOptions, error) {
	var own ConcurrencyOptions
	if o != nil {
		own = *o
	}
	return own, errors.Join(
		budgetOr(&own.Budget, st),
		leaseOr(&own.Lease),
		own.Fail.check(),
	)
}

func leaseOr(lease *time.Duration) error {
	given := *lease
	if given >= minLease && given <= maxLease && given%time.Millisecond == 0 {
		return nil
	}
	*lease = DefaultLease
	if given == 0 {
		return nil
	}
	return fmt.Errorf("Lease is %v: use whole milliseconds from %v to %v, or 0 for %v",
		given, minLease, span(maxLease), DefaultLease)
}
