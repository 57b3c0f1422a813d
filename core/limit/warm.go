package limit

import (
	"context"
	"slices"

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
	return l.remote.warm(ctx, l)
}

func (r *remote) warm(ctx context.Context, l *Limiter) error {
	scripts := []*script.Script{r.script, resetScript, r.settle}
	if slices.ContainsFunc(l.rules, hasBan) {
		scripts = append(scripts, banScript)
	}
	if r.leased {
		scripts = append(scripts, renewEstimatesScript)
	}
	return ask.Warm(ctx, r.Store, func(ctx context.Context, run *ask.Runner) error {
		asked := *r
		asked.asker = &asker{Decider: &ask.Decider{Runner: *run}}
		return asked.take(ctx, l, newGrant("warm", 0, len(l.rules)))
	}, scripts...)
}
