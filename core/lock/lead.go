package lock

import (
	"context"
	"errors"
)

// Lead runs fn in one process at a time. It waits for the lock of the key, for as long as
// ctx allows and also while Redis is down, and runs fn while it holds it: then this process
// leads.
//
//	err := locker.Lead(ctx, "rebalance", func(ctx context.Context) error {
//		return rebalance(ctx) // until ctx ends
//	})
//
// The context of fn ends when the leadership is lost or ctx ends; its cause says which. The
// leadership is lost as a lock is: Redis could not be reached for a lease, the lock was
// forced open, MaxHold is over, or the lease, with NoRenewal. Then Lead waits until fn has
// returned, waits for the lock, and runs fn again, whatever fn returned.
//
// If fn returns while it leads, Lead gives the lock back, wakes the next process, and
// returns what fn returned: this process is no candidate any more. A panic of fn
// propagates, after the release. When ctx ends, this process leads until fn has returned,
// and the next one leads at once, or within a RetryDelay if it may not subscribe. When this
// process is killed, the next one leads when the lease is over.
//
// One call of Lead never runs fn twice at once. Two processes may, if fn does not look at
// its context, and for a moment when the process was paused or the lock was forced open. So what
// fn writes should carry the fence of [FromContext], which grows with each leadership.
//
// Lead returns nil only if fn did. If the lock was lost and ctx has ended, it joins the loss
// with what fn returned. If fn is not running, it returns ctx.Err(); [ErrKey]; a
// [*script.Error] that waiting does not mend, since Redis denies a permission or the key is
// of another type; or [ErrHeld] if ctx is that of a holder of the key: Lead would wait for
// itself.
//
// The owner of [Locker.As] does not count, nor does Options.Wait. Leading costs what a
// lock costs. A process that waits asks once a RetryDelay, and while Redis is down too.
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

// lead runs fn and says whether the lock was lost before it returned.
func (l *Lock) lead(ctx context.Context, fn func(ctx context.Context) error) (lost, err error) {
	defer func() {
		if released := l.Release(ctx); isLoss(released) {
			lost = released
		}
	}()
	return nil, fn(l.Context())
}
