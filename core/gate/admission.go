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

// permit is what an admitted request took of a limiter.
type permit struct {
	context.Context
	gate     *rateLimit
	limiter  *limit.Limiter
	decision limit.Decision
	asked    Request // for the hook, after the handler
	settled  atomic.Bool
}

func (p *permit) Value(key any) any {
	if key == (takenKey{}) {
		return p
	}
	return p.Context.Value(key)
}

func (p *permit) outside() context.Context { return p.Context }

// leave settles by the outcome. What nobody saw counts, or a panic, or a
// connection taken over, would be a way round the limit.
func (p *permit) leave(reply *Reply) {
	if reply == nil || reply.Status == 0 || p.gate.opts.Count(reply.Status) {
		p.settled.Store(true)
		return
	}
	p.giveBack(p.asked)
}

// giveBack waits for the refund, though the client may be gone: the limiter's
// budget bounds it. Too late for a refund is no fault.
func (p *permit) giveBack(r Request) {
	if p.settled.Swap(true) {
		return
	}
	err := p.limiter.Refund(context.WithoutCancel(p.Context), p.decision)
	if err != nil && !errors.Is(err, limit.ErrRefund) {
		p.gate.answers.tell(r, err)
	}
}
