package limit

import (
	"errors"
	"fmt"
)

var (
	// ErrCost matches a [*CostError]: errors.Is(err, ErrCost) is true for each.
	ErrCost = errors.New("limit: cost out of range")
	// ErrNoBan reports that no policy of the limiter has a [Ban]. [WithBan] gives a policy one.
	ErrNoBan = errors.New("limit: no policy of the limiter has a Ban: give one by limit.WithBan")
	// ErrNoHold reports that the limiter cannot put a subject on hold. Options.Holds lets it.
	ErrNoHold = errors.New("limit: the limiter cannot put a subject on hold: set Options.Holds")
	// ErrNoOverride reports that the limiter cannot give a subject other policies.
	// Options.Overrides lets it.
	ErrNoOverride = errors.New("limit: the limiter cannot give a subject other policies: set Options.Overrides")
	// ErrRefund reports that there is nothing to give back. The error that wraps it says
	// why: the decision is nil or zero, was denied, was a Peek, was settled or given back
	// before, or is being settled; or what it took is gone.
	ErrRefund = errors.New("limit: nothing to refund")
	// ErrSettle reports that a decision cannot be settled. The error that wraps it says
	// why: the decision is nil or zero, was denied, was a Peek, or was settled or given
	// back before; a policy or [Prepaid] does not allow it; or the actual cost is not 0
	// to 2^53.
	ErrSettle = errors.New("limit: nothing to settle")
	// ErrSubject reports that the subject is empty. If one limit is for all callers, use
	// a fixed subject such as "all".
	ErrSubject = errors.New("limit: the subject is empty: if one limit is for all callers, use a fixed subject such as \"all\"")
)

// errLimiter reports a mistake in the calling program.
var errLimiter = errors.New("limit: a nil or zero Limiter: make one with New or NewLocal, and check its error first")

// CostError reports that a cost is below 0 or above what a policy can ever grant. Waiting
// would not help.
type CostError struct {
	Cost     int64  // what was asked for
	Capacity int64  // of Policy
	Policy   string // the name of the tightest policy
}

func (e *CostError) Error() string {
	return fmt.Sprintf("limit: a cost of %d is not from 0 to %d, the capacity of policy %q", e.Cost, e.Capacity, e.Policy)
}

// Is makes errors.Is(err, ErrCost) true.
func (e *CostError) Is(target error) bool { return target == ErrCost }

// DroppedError reports that a [Decision.Settle] or a [Decision.Refund] was given up: what
// the decision took stays taken, or, if it was an estimate on a lease, comes back when the
// lease ends. Its fields say what Redis should have been told.
type DroppedError struct {
	Subject string
	Taken   int64 // what the decision took
	Actual  int64 // what it should have taken: what was used, or 0 for a Refund
	Err     error // the error of the last call; its text may name keys
}

func (e *DroppedError) Error() string {
	return fmt.Sprintf("limit: given up: %d permits were taken and should have been %d: %v", e.Taken, e.Actual, e.Err)
}

// Unwrap returns the error of the last call.
func (e *DroppedError) Unwrap() error { return e.Err }
