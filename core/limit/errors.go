package limit

import (
	"errors"
	"fmt"
)

var (
	// ErrCost is matched by a [*CostError].
	ErrCost = errors.New("limit: cost out of range")
	// ErrRefund says that a decision has nothing to give back, and is wrapped
	// with why: it was denied, a Peek, given back before, another limiter's, or
	// what it took is gone.
	ErrRefund = errors.New("limit: nothing to refund")
	// ErrSettle says that a decision cannot be settled, and is wrapped with why: it was
	// denied, a Peek, settled or given back before, or a policy does not allow it.
	ErrSettle = errors.New("limit: nothing to settle")
	// ErrSubject says that the subject is empty. For one limit on all callers, use a
	// fixed subject such as "all".
	ErrSubject = errors.New("limit: the subject is empty")
)

// What the program has to mend.
var (
	errLimiter     = errors.New("limit: a nil or zero Limiter: make one with New or NewLocal, and check its error first")
	errConcurrency = errors.New("limit: a nil or zero Concurrency: make one with NewConcurrency or NewLocalConcurrency, and check its error first")
)

// CostError says that a request costs less than 0, or more than a policy can
// ever grant: waiting would not help.
type CostError struct {
	Cost     int64  // what was asked for
	Capacity int64  // of the policy, or of the tightest one
	Policy   string // its name
}

func (e *CostError) Error() string {
	return fmt.Sprintf("limit: a cost of %d is not from 0 to %d, the capacity of policy %q", e.Cost, e.Capacity, e.Policy)
}

// Is makes errors.Is(err, ErrCost) true.
func (e *CostError) Is(target error) bool { return target == ErrCost }
