package limit

import (
	"context"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// Warm connects to Redis, loads the limiter's scripts on every node of a cluster, and
// makes one decision that takes nothing. After that, the first requests are decided
// within the budget. Call it when the process starts, with a deadline of some seconds. If
// ctx has no deadline, it takes up to 10 s.
//
// If Redis fails, Warm returns the error whatever the FailMode is, so that you find out
// at start about a wrong password or a missing permission. If the Redis user may run
// scripts but not load them, that is not an error as long as the scripts are loaded.
func (l *Limiter) Warm(ctx context.Context) error {
	misuse.Context(ctx)
	if !l.made() {
		return errLimiter
	}
	if l.remote == nil {
		return ctx.Err()
	}
	return l.remote.warm(ctx, l)
}

func (r *remote) warm(ctx context.Context, l *Limiter) error {
	return ask.Warm(ctx, r.store, func(ctx context.Context, run *script.Runner) error {
		asked := *r
		asked.asker = &asker{Runner: run}
		return asked.take(ctx, l, newGrant("warm", 0, len(l.rules)))
	}, r.script, resetScript, settleScript)
}
