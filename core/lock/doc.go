// Package lock gives out locks on Redis, leased, renewed and fenced, has one process
// lead, and runs jobs once.
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
// behave, and the holder honours its context. A lease lapses in Redis if its holder
// does not renew it in time. So a holder that was paused for longer may find that
// another has the lock. Until it looks, there are two holders. There are also two after a
// failover to a replica that did not know the lock. A write that must not happen twice
// should carry the fence; see [Lock.Fence].
//
// # Waiting
//
// [Locker.Try] does not wait, [Locker.Acquire] does. Callers in one process queue per
// key and owner; only the first in each queue asks Redis.
//
// # Owners
//
// A lock belongs to its hold. No caller gets it a second time, not even the same
// goroutine, unless [Locker.As] made the Locker: all its holds have one owner.
//
// # Leadership
//
// [Locker.Lead] runs a function in one process at a time, and in the next one when that
// process is gone.
//
// # Jobs
//
// [Locker.Once] runs a function for one tick of a job, in one of the processes
// that ask for it.
//
// # Errors
//
// What became of a lock is one of a few errors, such as [ErrHeld] and [ErrTakenByOther];
// compare them with errors.Is. If Redis could not answer, the error is a [script.Error]
// of neap's core/script, whose class says whether the script ran.
package lock
