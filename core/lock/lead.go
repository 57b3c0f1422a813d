package lock

import (
	"context"
	"errors"
)

// Lead runs fn in one process at a time. It waits for the lock of the key for as long as
// ctx allows, also while Redis is down, and runs fn while it holds the lock: this process
// leads. All calls of Lead with the key, on Lockers of one name, compete, and so do Try,
// Acquire and Do.
//
//	err := locker.Lead(ctx, "rebalance", func(ctx context.Context) error {
//		return rebalance(ctx) // until ctx ends
//	})
//
// The context of fn ends when the leadership is lost, and when ctx ends; context.Cause
// tells which. When it is lost, because Redis could not be reached for a lease, say, it
// ends before another process can lead, and Lead waits for fn to return. Whatever fn
// returned, Lead then waits for the lock again, and runs fn again. MaxHold, and the end of
// the lease with NoRenewal, are such losses.
//
// If fn returns while it leads, Lead gives the lock back, which wakes the next process,
// and returns what fn returned. A panic of fn propagates, after the release. To be a
// candidate again, call Lead again.
//
// When ctx ends, this process leads until fn has returned, and the next one leads then, at
// once; without permission to subscribe, within a RetryDelay. When a process dies, the
// next one leads when the lease is over. A lease shorter than the default makes that
// sooner.
//
// A fn that does not look at its context works on beside the next leader. So it does for
// a moment after a pause of the process, or when the lock was forced open. A call of Lead
// never runs fn twice at once, but two processes may. What fn writes should carry the
// fence of [FromContext], which grows with each leadership.
//
// Lead returns nil only if fn did. If fn is not running, it returns ctx.Err(), [ErrKey], or
// a [*script.Error] for what waiting does not mend: a permission that Redis denies, or a
// key of another type. If the lock was lost and ctx has ended too, it joins the loss with
// what fn returned. If ctx is that of a holder of the key, it returns [ErrHeld], since it
// would wait for ever.
//
// The owner of [Locker.As] does not count, nor does Options.Wait. Leading costs what a
// lock costs. Each process that waits asks once a RetryDelay, and has one connection to be
// woken by. While Redis is down it tries as often; what the store logs and tells its
// observers says so.
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
