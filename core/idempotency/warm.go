package idempotency

import (
	"context"

	"github.com/neap-go/neap/core/internal/ask"
)

// Warm connects to Redis, loads the scripts on every node of a cluster, and makes one call
// that changes nothing, so that the first claims are granted within the budget. Call it
// at start, with a deadline of some seconds; without one it takes up to 10 s.
//
// It returns the error of Redis, so that a start can tell a wrong password from a missing
// permission. A user who may run scripts but not load them is no error if they are loaded.
func (g *Guard) Warm(ctx context.Context) error {
	if !g.made() {
		return errGuard
	}
	return ask.Warm(ctx, g.store, ask.About(inspectScript, g.space.Key("warm", "")),
		beginScript, renewScript, completeScript, abandonScript, resolveScript, forgetScript, inspectScript)
}
