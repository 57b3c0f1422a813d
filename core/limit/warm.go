package limit

import (
	"context"

	"github.com/neap-go/neap/core/internal/misuse"
)

// Warm connects to Redis, loads the limiter's scripts on every node of a cluster, and
// makes one decision that takes nothing. After that, the first requests are decided
// within the budget. Call it when the process starts, with a deadline of some seconds. If
// ctx has no deadline, it takes up to 10 s.
//
// If Redis fails, Warm returns the error whatever the FailMode is, so that you find out
// at start about a wrong password or a missing permission. It is no error if SCRIPT LOAD
// is refused, as long as Redis answers the decision. Warm writes nothing, so it does not
// notice a Redis that is full or a replica; `neap doctor` does.
func (l *Limiter) Warm(ctx context.Context) error {
	misuse.Context(ctx)
	if !l.made() {
		return errLimiter
	}
	if l.remote == nil {
		return ctx.Err()
	}
	return l.remote.Warm(ctx)
}
