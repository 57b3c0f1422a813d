package limit

import (
	"context"
	"fmt"

	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Settlement is the result of a Settle.
type Settlement struct {
	// After is the limiter's state afterwards, as Peek would report it. While the subject
	// owes more than its limit, Remaining is 0, and RetryAfter is how long until a permit
	// is free. It says nothing of bans, and counts estimates whose lease has ended. Redis does
	// not read policies that a Settle does not change: a [PerRequest], and a [Shadow] that had
	// denied. They are told as they were at the decision, aged.
	After Decision
	// Forgiven is how many permits of the actual cost were not charged, because a policy
	// would owe more than its MaxDebt. With several policies it is the largest such
	// number.
	Forgiven int64
}

// Settle replaces the cost that a decision took by what was actually used: for example an
// estimate of tokens by the tokens, or an announced length by the bytes. Until then the
// estimate counts as taken for every caller.
//
// If more was used, Settle charges the difference now, even if the limit is reached. A
// policy can owe up to its MaxDebt beyond its Limit or Burst. It then admits nothing
// until it owes less. The debt of a bucket drains; the debt of a window ends with it.
// What is beyond MaxDebt is forgiven. So requests exceed a limit by at most what those in
// flight use beyond their estimates. A policy that forgives nothing admits on average no
// more than its rate.
//
// If less was used, Settle gives the difference back as Refund does: for a
// window while it lasts, and for a bucket what has not drained. If the window has ended
// meanwhile, the estimate stays in it, and what was used beyond the estimate charges the
// current window.
//
// A decision is settled once. The first actual cost counts, however many copies of the
// decision there are. Settle and Refund exclude each other. A decision that is never
// settled keeps its estimate, also after a crash, unless its policy is [WithLease]. A
// decision of FailOpen took nothing, so nothing is charged. A [PerRequest] policy is not
// changed. A [SlidingLog] cannot be settled, because it promises never to hold more than
// its limit; put it into PerRequest.
//
// Settle is safe for concurrent use. It uses only the values of ctx and does not end
// early with it. The error is [ErrSettle] if the decision cannot be settled, or the cost is
// below 0; a cost above 2^53 counts as 2^53. It is a [*script.Error] if Redis did not confirm the call within about twice
// the Budget, or at once while the breaker is open. Settle then goes on in the background,
// through an open breaker, and keeps the lease of the estimate meanwhile:
//
//   - It repeats the call for five minutes after the first one that may have run. A
//     marker in Redis, which lives for ten minutes, prevents a second charge. As long as
//     no call can have run, it is repeated for as long as Redis is away.
//   - Then it is given up. With 100,000 others in the background it is given up at once,
//     and the error is a [*DroppedError]. [Stats] counts both.
//   - [store.Store.Drain] waits for it.
//
// You need not call Settle again. A second call asks Redis once more for what the first
// one asked for.
//
// Settle costs one round trip. It costs one more the first time a difference is given
// back, and if nothing of the difference is left.
func (d *Decision) Settle(ctx context.Context, actual int64) (Settlement, error) {
	misuse.Context(ctx)
	switch {
	case d == nil || d.request == nil:
		return Settlement{}, unsettled("it is no decision of a limiter")
	case d.permits != nil:
		return Settlement{}, unsettled("its permit was charged ahead (Prepaid)")
	case actual < 0:
		return Settlement{}, unsettled(fmt.Sprintf("the actual cost is %d: use 0 or more", actual))
	}
	actual = min(actual, kind.Exact)
	q := d.request
	l := q.of
	if q.Peek || q.denied {
		return Settlement{}, unsettled("it was denied, or a Peek")
	}
	if err := l.unsettled(); err != nil {
		return Settlement{}, err
	}
	c, err := q.conclude(settles, actual)
	if err != nil {
		return Settlement{}, err
	}
	var s Settlement
	switch {
	case q.open:
		s.After = *d
	case q.local:
		readings, forgiven := l.local.Settle(l.set, &q.Request, q.at, actual)
		s = l.settlement(q, readings, forgiven)
	default:
		return c.finish(ctx)
	}
	c.succeeded(s)
	return s, nil
}

// changed ends the remembered denials of a subject, and makes the first caller that waits
// for it ask again.
func (l *Limiter) changed(subject string) {
	l.memory.Changed(subject)
	l.queues.Changed(subject)
}

func unsettled(why string) error { return fmt.Errorf("%w: %s", ErrSettle, why) }

func init() { //nolint:gochecknoinits // packages gate and outgoing ask for it, and it is not for users
	inside.OfLimiter = func(limiter any) inside.Limiter {
		l := limiter.(*Limiter)
		return inside.Limiter{
			HasLease: l.set.Leases, IsPrepaid: l.opts.Prepaid.Most > 0, Holds: l.opts.Holds,
			IsShadow: l.set.Rules[0].Shadow, Unsettled: l.unsettled(), // enforced rules come first
		}
	}
}

// unsettled returns why the limiter's decisions cannot be settled: a policy is a SlidingLog,
// or permits are Prepaid. Otherwise it is nil.
func (l *Limiter) unsettled() error {
	if l.opts.Prepaid.Most > 0 {
		return unsettled("the limiter is Prepaid, and keeps no permit for each request: leave out one of them")
	}
	for _, r := range l.set.Rules {
		if r.Entries && !r.Once {
			return unsettled(fmt.Sprintf("policy %q is a SlidingLog, which never holds more than its limit: use another policy, or PerRequest", r.Name))
		}
	}
	return nil
}

// settlement reports readings as Peek does.
func (l *Limiter) settlement(q *request, readings []kind.Reading, forgiven int64) Settlement {
	for i, r := range l.set.Rules {
		readings[i] = r.Foresee(readings[i], 0, 1)
	}
	s := Settlement{Forgiven: forgiven}
	l.judge(&s.After, readings, kind.Wants(1))
	s.After.Degraded = q.local && l.remote != nil
	s.After.request = l.refused // so that it cannot be refunded: it took nothing
	return s
}
