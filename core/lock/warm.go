package lock

import (
	"context"

	"github.com/neap-go/neap/core/internal/ask"
)

// Warm connects to Redis and has it load the scripts, on every node of a
// cluster, and asks once about a key that nobody has: the first locks then are
// granted within the budget. Call it at start, with a deadline of some seconds;
// it takes up to 10 s where ctx has none.
//
// Its error is that of Redis, so that a start can tell a wrong password or a
// missing permission. A user who may run scripts but not load them is no error,
// as long as they are loaded.
func (l *Locker) Warm(ctx context.Context) error {
	if !l.made() {
		return errLocker
	}
	return ask.Warm(ctx, l.store, ask.About(inspectScript, l.space.Key("warm", "")),
		acquireScript, extendScript, releaseScript, forceScript, inspectScript, startScript, endScript)
}
