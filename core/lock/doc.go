// Package lock gives out locks on Redis, leased, renewed and fenced, and runs
// jobs once.
//
//	locker, err := lock.New(rdb, "orders", nil)
//	if err != nil {
//		return err
//	}
//	err = locker.Do(ctx, "order-17", func(ctx context.Context) error {
//		return ship(ctx)
//	})
//
// # The promise, and where it ends
//
// There is at most one holder while one Redis primary keeps its data, clocks
// behave, and the holder honours its context. A lease in Redis lapses when its
// holder does not renew it in time, and so a holder that was paused for longer
// can come back to find that somebody else has its lock. Until it looks, and
// after a failover to a replica that did not know of the lock, there are two.
// What must not be done twice should carry the fence; see [Lock.Fence].
//
// # Waiting
//
// [Locker.Try] does not wait, [Locker.Acquire] does. The callers of one process
// that wait for a key form a line, the first of which asks Redis.
//
// # Owners
//
// A lock belongs to its hold, and nobody, not even the same goroutine, gets it a
// second time, unless the Locker was made by [Locker.As], whose holds have an
// owner in common.
//
// # Jobs
//
// [Locker.Once] runs a function for one tick of a job, in one of the processes
// that ask for it.
//
// # Errors
//
// What became of a lock is one of a few values, such as [ErrHeld] and
// [ErrTakenByOther], to be told apart with errors.Is. Where Redis could not
// answer it is a [script.Error] of neap's core/script, whose class says whether
// the question was carried out.
package lock
