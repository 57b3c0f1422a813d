package gate

import (
	"context"
	"errors"

	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/limit"
)

// OnlyFailures is a Count for [RateLimitOptions]. It counts only answers with a status of
// 400 or above. That includes the failures of your service: for logins, count what your
// handler answers to a wrong password.
func OnlyFailures(status int) bool { return status >= 400 }

// admission is what an admitted request took from a limiter. It exists only if the gate
// has a Count or a Settle.
type admission struct {
	gate     *rateLimit
	limiter  *limit.Limiter
	subject  string
	cost     int64
	decision limit.Decision
	ending   *ending
	asked    Request // for the hook and for Settle, after the handler
}

// leave gives the permits back if Count says that the answer does not count.
//
// An outcome that the gate did not see counts. So does a handler that gave up. Otherwise
// a panic, a connection that was taken over, or a client that hangs up would be a way
// around the limit. A refusal by a gate further in counts, whatever its status is.
//
// leave waits for the refund even if the client is gone. If Redis does not confirm it, the
// refund goes on in the background. A refund that comes too late is not an error.
func (a *admission) leave(reply *Reply) {
	if reply == nil || reply.Status == 0 || reply.Refused || a.ending.gaveUp(reply) || a.gate.opts.Count(reply.Status) {
		return
	}
	a.tell(a.decision.Refund(a.context()))
}

// settle replaces the estimate with what the request really cost.
func (a *admission) settle(reply *Reply) {
	if a.gate.opts.Wait > 0 {
		defer a.gate.unsettled.end(a.subject)
	}
	actual := int64(-1) // also if Settle panics
	defer func() {
		if actual < 0 && !inside.OfLimiter(a.limiter).HasLease {
			return
		}
		if actual < 0 { // settles to the estimate: otherwise the lease would end and give it back
			actual = a.cost
		}
		_, err := a.decision.Settle(a.context(), actual)
		a.tell(err)
	}()
	actual = a.gate.opts.Settle(a.asked, reply)
}

// context is for a call that may go on in the background, and may be given up there.
func (a *admission) context() context.Context {
	if a.gate.opts.OnError == nil {
		return a.ending.ctx
	}
	return undo.WithDropped(a.ending.ctx, a.tell)
}

// tell tells the hook what was given up. After any other error the call goes on in the
// background, or the handler has settled the decision itself.
func (a *admission) tell(err error) {
	if given, is := errors.AsType[*limit.DroppedError](err); is {
		a.gate.answers.tell(a.asked, given)
	}
}
