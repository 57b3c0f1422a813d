package idempotency

import (
	"context"

	"github.com/neap-go/neap/core/internal/ask"
)

// Warm connects to Redis and has it load the scripts, on every node of a
// cluster, and asks once about a key that nobody has: the first claims then are
// granted within the budget. Call it at start, with a deadline of some seconds;
// it takes up to 10 s where ctx has none.
//
// Its error is that of Redis, so that a start can tell a wrong password or a
// missing permission. A user who may run scripts but not load them is no error,
// as long as they are loaded.
func (g *Guard) Warm(ctx context.Context) error {
	if !g.made() {
		return errGuard
	}
	return ask.Warm(ctx, g.store, ask.About(inspectScript, g.space.Key("warm", "")),
		beginScript, renewScript, completeScript, abandonScript, resolveScript, forgetScript, inspectScript)
}
