package lock

import (
	"context"
	"errors"
)

// Lead runs fn in one process at a time. It waits for the lock of the key for as long as
// ctx allows, also while Redis is down. While it holds the lock, this process leads, and
// fn runs.
//
//	err := locker.Lead(ctx, "rebalance", func(ctx context.Context) error {
//		return rebalance(ctx) // until ctx ends
//	})
//
// The context of fn ends when the leadership is lost or ctx ends; its cause says which.
// The leadership is lost as a lock is: Redis could not be reached for a lease, the lock
// was forced open, MaxHold is over, or the lease is over with NoRenewal. Then Lead waits
// until fn has returned, waits for the lock again, and runs fn again, whatever fn
// returned.
//
//   - If fn returns while it leads, Lead releases the lock, wakes the next process, and
//     returns what fn returned. This process is no candidate any more.
//   - If fn panics, Lead releases the lock, and the panic propagates.
//   - If ctx ends, this process leads until fn has returned. The next process then leads
//     at once, or within a RetryDelay if it may not subscribe.
//   - If this process is killed, the next one leads when the lease is over.
//
// One call of Lead never runs fn twice at once. Two processes may run fn at once if fn
// does not look at its context, and for a moment after the process was paused or the lock
// was forced open. So what fn writes should carry the fence of [FromContext], which grows
// with each leadership.
//
// Lead returns nil only if fn did. If the lock was lost and ctx has ended, Lead joins the
// loss with what fn returned. If fn is not running, Lead returns
//
//   - ctx.Err();
//   - [ErrKey] for an empty key, and [ErrOwner] for an empty owner;
//   - [ErrHeld] if ctx is the context of a holder of the key, because Lead would wait for
//     itself;
//   - a [*script.Error] that waiting does not mend: Redis denies a permission, or the key
//     is of another type.
//
// Lead ignores Options.Wait, and the owner of [Locker.As] if it is not empty. Leading
// costs what a lock costs. A process that waits asks Redis once a RetryDelay, also while
// Redis is down.
func (l *Locker) Lead(ctx context.Context, key string, fn func(ctx context.Context) error) error {
	for {
		b, err := l.bid(ctx, key)
		if err != nil {
			return err
		}
		if b.within(ctx) {
			return ErrHeld
		}
		if fn == nil {
			return errFn
		}
		b.queue, b.owner = "", b.hold
		held, _, err := l.persist(ctx, b)
		held, err = l.finish(ctx, b, held, err)
		if err != nil {
			return err
		}
		lost, err := held.lead(ctx, fn)
		if lost == nil {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(err, lost)
		}
	}
}

// lead runs fn, and reports whether the lock was lost before fn returned.
func (l *Lock) lead(ctx context.Context, fn func(ctx context.Context) error) (lost, err error) {
	defer func() {
		if released := l.Release(ctx); isLoss(released) {
			lost = released
		}
	}()
	return nil, fn(l.Context())
}
