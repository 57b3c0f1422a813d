package limit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/line"
)

// ErrQueue reports that Options.MaxWaiting callers of the limiter wait already. Nothing
// was decided, so [Stats] do not count it, and observers are not told.
var ErrQueue = errors.New("limit: too many callers wait")

// Wait asks for one permit and waits until it is granted or ctx ends. In one process, the
// callers of a subject are admitted in the order of their calls, if they wait under the
// same policies of one limiter and those that [Limiter.With] made from it. Between others
// there is no order.
//
// Wait asks Redis when, by the limit, a permit should be free. It asks again if others
// have taken the permit meanwhile, and when one of these limiters gives permits back with
// a Refund, a Reset or a Settle, or lifts a ban. A grant costs one round trip, and one
// more for each time that it has asked too early.
//
// The error is ctx.Err(), [ErrQueue] if Options.MaxWaiting callers of the limiter wait
// already, or [ErrSubject]. With FailClosed it is a [*script.Error] if Redis could not
// decide. A permit that was granted is always returned, even if ctx has ended meanwhile.
func (l *Limiter) Wait(ctx context.Context, subject string) (Decision, error) {
	return l.WaitN(ctx, subject, 1)
}

// WaitN is Wait for n permits at once. A caller that asks for many permits is not
// overtaken by callers that ask for fewer. If n is out of range, the error is a
// [*CostError].
func (l *Limiter) WaitN(ctx context.Context, subject string, n int64) (Decision, error) {
	return l.wait(ctx, subject, n, nil)
}

// WaitFor is WaitN for a caller that waits no longer than most. With a most of 0 or less
// it does not wait at all.
//
// If the permits cannot be free within most, the caller is denied at once. RetryAfter is
// then the least time that it would have to wait, behind the callers of this process that
// wait already. A caller that waits is denied as soon as this process sees that others
// have taken what it waited for; behind 10,000 callers, some milliseconds later. The last
// call to Redis may begin a Budget after most, and takes a Budget at most.
//
// A grant costs one round trip, and one more for each time that other processes were
// faster. A denial that this process can foresee costs none: while a caller waits for the
// subject, it follows from the last answer, even if another process has lifted a ban or
// changed an override since. Callers of Take do not
// queue, so use either Take or Wait for a subject, not both.
//
// If MaxWaiting callers of the limiter wait already, WaitFor returns [ErrQueue] for a
// subject that others wait for under the same policies. Otherwise it decides as TakeN does.
// The other errors are those of WaitN.
func (l *Limiter) WaitFor(ctx context.Context, subject string, n int64, most time.Duration) (Decision, error) {
	most = min(max(most, 0), kind.Forever/2) // so that what is left of it can be computed
	return l.wait(ctx, subject, n, &most)
}

// waiting is a caller that waits.
type waiting struct {
	subject string
	n       int64
	most    *time.Duration // nil without a limit
	room    bool           // it counts for MaxWaiting
	d       Decision
	took    time.Duration // that Redis took for d
}

// wait waits without a limit if most is nil.
func (l *Limiter) wait(ctx context.Context, subject string, n int64, most *time.Duration) (Decision, error) {
	if err := l.check(ctx, subject, n); err != nil {
		return Decision{}, err
	}
	w := waiting{subject: subject, n: n, most: most}
	var asked time.Time // for the last time
	defer func() {
		if w.room {
			l.queues.Free()
		}
	}()
	err := l.decided(ctx, subject, func(l *Limiter, cause error) (answered bool, err error) {
		if err := l.checkCost(n); err != nil { // other policies may count since it began to wait
			return false, err
		}
		if most != nil && !asked.IsZero() { // its time does not begin anew
			*most -= time.Since(asked)
		}
		asked = time.Now()
		return w.under(ctx, l, cause)
	})
	l.tell(ctx, n, &w.d, err, w.took)
	return w.d, err
}

// under waits under the policies of l, whatever others the subject may have. A cause says why Redis
// cannot be asked now: then the first decision is made without it, unless that comes more than a
// Budget later. answered says that Redis has made one.
func (w *waiting) under(ctx context.Context, l *Limiter, cause error) (answered bool, err error) {
	place, queued := l.queues.Join(l.set, w.subject, w.n, w.most, l.opts.Budget, w.room)
	switch {
	case place == nil && (queued || w.most == nil):
		return false, ErrQueue
	case place == nil:
		w.d, w.took, err = l.askAs(ctx, w.subject, w.n, false, cause)
		return false, err
	}
	w.room = true
	defer l.queues.Leave(place)
	var failed error
	joined := time.Now()
	denial, err := place.Wait(ctx, func() (line.Answer, error) {
		if time.Since(joined) > l.opts.Budget {
			cause = nil
		}
		w.d, w.took, failed = l.askAs(ctx, w.subject, w.n, false, cause)
		cause = nil
		answered = answered || failed == nil && !w.d.Degraded
		return answer(w.d), failed
	})
	switch {
	case denial != nil:
		w.d, w.took = l.denied(denial), 0
	case failed == nil && err != nil: // it did not wait for an answer
		w.d, w.took = Decision{}, 0
	}
	return answered, err
}

// answer returns what the callers that wait need to know of a decision. It does not keep a
// decision whose estimates are renewed for as long as something refers to it.
func answer(d Decision) line.Answer {
	a := line.Answer{Allowed: d.Allowed, RetryAfter: d.RetryAfter, Of: d}
	if d.request == nil || len(d.request.Readings) == 0 || d.permits != nil {
		return a
	}
	a.Readings = d.request.Readings
	if d.request.kept != nil {
		a.Readings, a.Of = slices.Clone(a.Readings), Decision{Degraded: d.Degraded, Cause: d.Cause}
	}
	return a
}

// denied returns the decision of a denial that was foreseen.
func (l *Limiter) denied(by *line.Denial) (d Decision) {
	was := by.Of.(Decision)
	if by.Readings == nil {
		d = was
	} else {
		l.judge(&d, by.Readings, by.Wanted)
		d.request, d.Degraded, d.Cause = l.refused, was.Degraded, was.Cause
	}
	d.RetryAfter = by.RetryAfter
	return d
}
