// Package lock gives out locks on Redis. A lock is a lease that neap renews while its
// holder lives, and it has a fence for your database. The package also runs a function in
// one process at a time, and a job once a tick.
//
//	locker, err := lock.New(rdb, "orders", nil)
//	if err != nil {
//		return err
//	}
//	err = locker.Do(ctx, "order-17", func(ctx context.Context) error {
//		return ship(ctx) // ctx ends when the lock is lost
//	})
//
// # Getting a lock
//
// [Locker.Do] runs a function under a lock. [Locker.Try] asks for a lock once and does
// not wait. [Locker.Acquire] waits. Callers in one process queue per key and owner; only
// the first in each queue asks Redis. Processes that wait stand in line, and a lock passes
// from one to the next. [Locker.AcquireAll] gets the locks of several keys, or none.
//
// # Owners
//
// A lock belongs to its hold. No caller gets it a second time, not even the same
// goroutine. The exception is a Locker that [Locker.As] made: all its holds have one
// owner, which may take a lock that it already has.
//
// # Leadership
//
// [Locker.Lead] runs a function in one process at a time, and in the next process when
// that one is gone.
//
// # Jobs
//
// [Locker.Once] runs a function for one tick of a job, in one of the processes that ask
// for it.
//
// # Errors
//
// A few errors say what became of a lock, such as [ErrHeld] and [ErrTakenByOther].
// Compare them with errors.Is. If Redis could not answer, the error is a [script.Error]
// of neap's core/script, whose class says whether the script ran.
//
// # Where the promise ends
//
// There is at most one holder while one Redis primary keeps its data, clocks behave, and
// the holder honours its context.
//
// A lease lapses in Redis if its holder does not renew it in time. So if a holder was
// paused for longer than its lease, another may have the lock. There are two holders
// until the paused one looks at [Lock.Err] or its context. There are also two after a
// failover to a replica that did not know the lock.
//
// A write that must not happen twice should carry the fence, which your database
// compares: see [Lock.Fence].
//
// [What a lock promises] has every case, and what to do about it.
//
// [What a lock promises]: https://github.com/neap-go/neap/blob/main/docs/locks.md
package lock
