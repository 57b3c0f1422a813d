package gate

import (
	"context"
	"errors"

	"github.com/neap-go/neap/core/limit"
)

// OnlyFailures is a Count of [RateLimitOptions] under which an answer of 400
// and above counts: failed logins, not the others.
func OnlyFailures(status int) bool { return status >= 400 }

// admission is what an admitted request took of a limiter, if the gate has a Count or a Settle.
type admission struct {
	gate     *rateLimit
	limiter  *limit.Limiter
	subject  string
	cost     int64
	decision limit.Decision
	ending   *ending
	asked    Request // for the hook and for Settle, after the handler
}

// leave settles the permit by the outcome. An unseen outcome counts, and so does a
// handler that gave up: a panic, a connection taken over, or a client that hangs up
// would be a way round the limit otherwise. A refusal further in counts, whatever
// status it is rendered with.
//
// It waits for the refund, though the client may be gone: the limiter's budget
// bounds it. Too late for a refund is no fault.
func (a *admission) leave(reply *Reply) {
	if reply == nil || reply.Status == 0 || reply.Refused || a.ending.gaveUp(reply) || a.gate.opts.Count(reply.Status) {
		return
	}
	err := a.limiter.Refund(a.outliving(), a.decision)
	if err != nil && !errors.Is(err, limit.ErrRefund) {
		a.gate.answers.tell(a.asked, err)
	}
}

// settle makes of the estimate what the request cost.
func (a *admission) settle(reply *Reply) {
	if a.gate.opts.Wait > 0 {
		defer a.gate.unsettled.end(a.subject)
	}
	actual := a.gate.opts.Settle(a.asked, reply)
	if actual < 0 && !a.limiter.HasLease() {
		return
	}
	if actual < 0 { // or it would be given back
		actual = a.cost
	}
	_, err := a.decision.Settle(a.outliving(), actual)
	if err != nil && !errors.Is(err, limit.ErrSettle) {
		a.gate.answers.tell(a.asked, err)
	}
}

// outliving is the context of calls that the client's going away does not end.
func (a *admission) outliving() context.Context { return context.WithoutCancel(a.ending.ctx) }
