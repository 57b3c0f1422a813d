package gate

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/neap-go/neap/core/limit"
)

// OnlyFailures is a Count of [RateLimitOptions] under which an answer of 400
// and above counts: failed logins, not the others.
func OnlyFailures(status int) bool { return status >= 400 }

// admission is what an admitted request took of a limiter.
type admission struct {
	context.Context
	gate     *rateLimit
	limiter  *limit.Limiter
	decision limit.Decision
	asked    Request // for the hook, after the handler
	settled  atomic.Bool
}

func (a *admission) Value(key any) any {
	if key == (takenKey{}) {
		return a
	}
	return a.Context.Value(key)
}

func (a *admission) outside() context.Context { return a.Context }

// leave settles by the outcome. What nobody saw counts: a panic, or a
// connection taken over, would be a way round the limit otherwise.
func (a *admission) leave(reply *Reply) {
	if reply == nil || reply.Status == 0 || a.gate.opts.Count(reply.Status) {
		a.settled.Store(true)
		return
	}
	a.giveBack(a.asked, reply)
}

// giveBack waits for the refund, though the client may be gone: the limiter's
// budget bounds it. Too late for a refund is no fault.
func (a *admission) giveBack(r Request, _ *Reply) {
	if a.settled.Swap(true) {
		return
	}
	err := a.limiter.Refund(context.WithoutCancel(a.Context), a.decision)
	if err != nil && !errors.Is(err, limit.ErrRefund) {
		a.gate.answers.tell(r, err)
	}
}
