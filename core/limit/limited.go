package limit

import (
	"errors"
	"fmt"
	"time"
)

// ErrLimited matches a [*LimitedError]: errors.Is(err, ErrLimited) is true for each.
var ErrLimited = errors.New("limit: the limit is reached")

// LimitedError is a denial where a call returns an error and no Decision, such as a request
// through nethttp.NewTransport.
type LimitedError struct {
	// RetryAfter is how long until the same call is granted, if no other takes permits. If
	// too many callers wait, it is how long they wait at most.
	RetryAfter time.Duration
	// Decision is the denial. It is the zero Decision if there is a Reason.
	Decision Decision
	// Reason is [ErrQueue] if too many callers wait, or that of a package which uses this
	// error, such as outgoing.ErrOnHold. Otherwise it is nil.
	Reason error
}

func (e *LimitedError) Error() string {
	switch {
	case e.Reason != nil:
		return e.Reason.Error()
	case e.Decision.OnHold():
		return fmt.Sprintf("limit: the subject is on hold: try again after %v", e.RetryAfter)
	}
	return fmt.Sprintf("limit: policy %q: the limit of %d is reached: try again after %v", e.Decision.Policy, e.Decision.Limit, e.RetryAfter)
}

// Is makes errors.Is(err, ErrLimited) true.
func (e *LimitedError) Is(target error) bool { return target == ErrLimited }

// Unwrap returns the Reason.
func (e *LimitedError) Unwrap() error { return e.Reason }
