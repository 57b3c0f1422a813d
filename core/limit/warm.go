package limit

import (
	"context"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// Warm connects to Redis and has it load the limiter's scripts, on every node
// of a cluster, and makes one decision that takes nothing: the first requests
// are then decided within the budget. Call it at start, with a deadline of some
// seconds; it takes up to 10 s where ctx has none.
//
// Its error is that of Redis whatever the FailMode is, so that a start can
// tell a wrong password or a missing permission. A user who may run scripts
// but not load them is no error, as long as they are loaded.
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
