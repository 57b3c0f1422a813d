package limit

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/limit/internal/denials"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/prepaid"
	"github.com/neap-go/neap/core/store"
)

// A decider decides a request whose cost is above 0, or passes it on to the next decider. A limiter
// has a row of them, which is made once: what it does not use is not in it.
type decider interface {
	decide(ctx context.Context, l *Limiter, subject string, cost int64) (d Decision, took time.Duration, err error)
}

// deciders returns the first decider. First come permits that were charged ahead, then denials that
// are remembered, then permits that are charged ahead now, and at last a request by itself.
func (l *Limiter) deciders() decider {
	var first decider = alone{}
	if l.accounts != nil {
		first = charging{l.accounts}
	}
	if l.memory != nil {
		first = remembering{l.memory, first}
	}
	if l.accounts != nil {
		first = spending{l.accounts, first}
	}
	return first
}

// spending grants permits that were charged ahead, even if Redis would deny: they are charged.
type spending struct {
	accounts *prepaid.Accounts
	next     decider
}

func (s spending) decide(ctx context.Context, l *Limiter, subject string, cost int64) (d Decision, took time.Duration, err error) {
	var few [kind.Few]kind.Reading
	from, index, told := s.accounts.Of(subject, l.set).Take((*charger)(l), cost, few[:0])
	if from == nil {
		return s.next.decide(ctx, l, subject, cost)
	}
	l.spend(&d, from, index, told, cost)
	return d, 0, nil
}

// remembering repeats denials, and remembers new ones.
type remembering struct {
	memory *denials.Memory
	next   decider
}

func (r remembering) decide(ctx context.Context, l *Limiter, subject string, cost int64) (d Decision, took time.Duration, err error) {
	if l.recall(r.memory, &d, subject, cost) {
		return d, 0, nil
	}
	at, epoch := r.memory.Epoch(subject)
	d, took, err = r.next.decide(ctx, l, subject, cost)
	if err == nil && !d.Allowed && !d.Degraded {
		r.memory.Keep(l.set, &d.request.Request, at, epoch)
	}
	return d, took, err
}

// recall decides by a remembered denial, if one covers the cost.
func (l *Limiter) recall(from *denials.Memory, d *Decision, subject string, cost int64) (known bool) {
	var few [kind.Few]kind.Reading
	readings := from.Recall(l.set, subject, cost, few[:0])
	if readings == nil {
		return false
	}
	l.judge(d, readings, kind.Wants(cost))
	d.request = l.refused
	return !d.Allowed
}

// charging charges permits ahead. If that is not worthwhile, or not possible, the request is made by
// itself.
type charging struct{ accounts *prepaid.Accounts }

func (c charging) decide(ctx context.Context, l *Limiter, subject string, cost int64) (d Decision, took time.Duration, err error) {
	var few [kind.Few]kind.Reading
	one := c.accounts.Of(subject, l.set)
	from, index, told, cause := one.Ask(ctx, (*charger)(l), subject, cost, few[:0])
	if from != nil {
		l.spend(&d, from, index, told, cost)
		return d, 0, nil
	}
	d, took, err = l.request(ctx, subject, cost, false, cause)
	if err == nil && !d.Degraded {
		one.Note(d.Remaining)
	}
	return d, took, err
}

// alone makes a request by itself.
type alone struct{}

func (alone) decide(ctx context.Context, l *Limiter, subject string, cost int64) (d Decision, took time.Duration, err error) {
	return l.request(ctx, subject, cost, false, nil)
}

// request makes a request by itself. If cause is not nil, Redis cannot be asked.
func (l *Limiter) request(ctx context.Context, subject string, cost int64, peek bool, cause error) (d Decision, took time.Duration, err error) {
	q := newRequest(subject, cost, len(l.set.Rules))
	q.of, q.Peek, q.Asked = l, peek, time.Now()
	if cause == nil {
		cause = l.take(ctx, q)
	}
	d, err = l.resolve(ctx, q, cause)
	q.Answered = time.Now()
	if q.Token != "" && cause == nil && err == nil && d.Allowed && !peek {
		q.renew()
	}
	return d, q.Answered.Sub(q.Asked), err
}

func (l *Limiter) take(ctx context.Context, q *request) error {
	if l.remote == nil {
		return l.takeLocal(ctx, q)
	}
	err := l.remote.Take(ctx, &q.Request)
	if err != nil {
		return err
	}
	if l.opts.Fail != store.FailClosed {
		l.local.Note(l.set, &q.Request, l.among())
	}
	return nil
}

// resolve returns the decision. If Redis made none, the failure mode decides.
func (l *Limiter) resolve(ctx context.Context, q *request, cause error) (Decision, error) {
	switch {
	case cause == nil:
		return l.decision(q), nil
	case ask.IsCallers(cause) || l.opts.Fail == store.FailClosed:
		return Decision{}, cause
	case l.opts.Fail == store.FailLocal:
		l.hintInstances()
		if err := l.takeLocal(ctx, q); err != nil {
			return Decision{}, err
		}
	case !l.local.Banned(l.set, &q.Request):
		q.open = true
		return Decision{Allowed: true, Degraded: true, Cause: cause, request: q}, nil
	}
	d := l.decision(q)
	d.Degraded, d.Cause = true, cause
	return d, nil
}

func (l *Limiter) takeLocal(ctx context.Context, q *request) error {
	q.local = true
	if err := ctx.Err(); err != nil {
		return err
	}
	q.at = l.local.Take(l.set, &q.Request, l.among())
	return nil
}

func (l *Limiter) decision(q *request) Decision {
	var d Decision
	if q.Peek {
		for i, r := range l.set.Rules {
			q.Readings[i] = r.Foresee(q.Readings[i], 0, kind.Wants(q.Cost).Of(r))
		}
	}
	l.judge(&d, q.Readings, kind.Wants(q.Cost))
	d.request, q.denied = q, !d.Allowed
	return d
}
