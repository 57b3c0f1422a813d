package lock

import (
	"context"

	"github.com/neap-go/neap/core/internal/ask"
)

// Warm connects to Redis, loads the scripts on every node of a cluster, and makes one
// call that changes nothing. The first locks are then granted within the budget. Call it
// at start, with a deadline of some seconds; without a deadline it takes up to 10 s.
//
// Warm returns the error of Redis, so that a start can tell a wrong password from a
// missing permission. It is no error if SCRIPT LOAD is refused, as long as Redis answers
// that call. Warm writes nothing, so it does not notice a Redis that is full or a
// replica; `neap doctor` does.
func (l *Locker) Warm(ctx context.Context) error {
	if !l.made() {
		return errLocker
	}
	return ask.Warm(ctx, l.store, ask.About(inspectScript, l.space.Key("warm", "")),
		acquireScript, extendScript, releaseScript, forceScript, inspectScript, leaveScript, startScript, endScript)
}
