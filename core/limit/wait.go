package limit

import (
	"context"
	"errors"
	"time"
)

// ErrQueue says that MaxWaiting callers wait already.
var ErrQueue = errors.New("limit: too many callers wait")

// Wait asks for one permit and waits until it is granted or ctx ends. Callers
// of one subject in this process are admitted in the order of their calls; of
// several processes that wait, any may be first. It asks Redis when the limit says that
// a permit should be there, again if others have taken it meanwhile, and when this process gives
// permits back by a Refund, a Reset or a Settle, or lifts a ban.
//
// The error is ctx.Err(), [ErrQueue] when Options.MaxWaiting callers of the
// limiter wait already, [ErrSubject], or, with FailClosed, that of Redis. What
// was granted is always returned, though ctx may have ended meanwhile.
func (l *Limiter) Wait(ctx context.Context, subject string) (Decision, error) {
	return l.WaitN(ctx, subject, 1)
}

// WaitN is Wait for n permits at once. One that asks for many is not overtaken
// by others that ask for fewer. An n out of range is a [*CostError].
func (l *Limiter) WaitN(ctx context.Context, subject string, n int64) (Decision, error) {
	return l.wait(ctx, subject, n, nil)
}

// WaitFor is WaitN for a caller that waits no longer than most. If the permits cannot be
// there by then, it is denied at once: RetryAfter is how long it would have to wait at
// least, behind those of this process that wait already. It is longer for callers that come
// together while Redis has not answered any of them: each counts all that came before it, also
// those that are denied with it. One that waits is denied as soon as
// other processes have taken what it waited for. The last call to Redis may begin a
// Budget after most, and takes a Budget at most. With a most of 0 or less nobody waits.
//
// A grant costs one round trip, and one more for each time that other processes were
// faster; a denial that is foreseen in this process costs none. Callers of Take do not queue:
// for one subject, use one of the two.
//
// When MaxWaiting callers of the limiter wait already, it decides as TakeN does for a subject
// that nobody waits for, and otherwise returns ErrQueue.
func (l *Limiter) WaitFor(ctx context.Context, subject string, n int64, most time.Duration) (Decision, error) {
	return l.wait(ctx, subject, n, &most)
}

// wait waits for ever if most is nil.
func (l *Limiter) wait(ctx context.Context, subject string, n int64, most *time.Duration) (Decision, error) {
	if err := l.check(ctx, subject, n); err != nil {
		return Decision{}, err
	}
	w, queued := l.queues.join(subject, n)
	switch {
	case w == nil && (queued || most == nil):
		return Decision{}, ErrQueue
	case w == nil:
		return l.TakeN(ctx, subject, n)
	}
	defer l.queues.leave(w)
	began, known := time.Now(), false // known is set at the first answer to one of the queue
	for {
		at := l.queues.place(w)
		var d Decision
		rest, denied := at.rest(l, &d, n)
		passed := time.Since(began)
		if !known && at.seen != nil { // from now on it waits for permits, and not for an answer
			began, passed = time.Now(), 0
		}
		left := forever
		if most != nil {
			left = min(*most, forever/2) - passed
		}
		if denied && rest > left && (!known || rest > left+l.opts.Budget) { // clocks and turns may make it late by less
			l.tell(ctx, n, &d, nil, 0)
			return d, nil
		}
		known = known || at.seen != nil
		if most != nil {
			left += l.opts.Budget // of the last call
		}
		if rest <= 0 && (at.first || left <= 0) {
			d, took, err := l.ask(ctx, subject, n, false)
			l.queues.saw(w, &d, err, at.freed)
			if err != nil || d.Allowed {
				l.tell(ctx, n, &d, err, took)
				return d, err
			}
			continue
		}
		if !at.first {
			rest = forever
		}
		if err := w.sleep(ctx, min(rest, max(left, leastRest))); err != nil {
			return Decision{}, err
		}
	}
}

const forever = time.Duration(1<<63 - 1)
