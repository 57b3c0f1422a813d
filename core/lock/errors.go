package lock

import (
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/script"
)

// What became of a lock, or of an attempt to get one. A call that Redis could
// not answer fails with a [*script.Error] instead.
var (
	// ErrHeld: another holder has the lock.
	ErrHeld = errors.New("lock: held by another")
	// ErrExpired: the lease was over before the lock was released.
	ErrExpired = errors.New("lock: the lease is over")
	// ErrMaxHold is an [ErrExpired] that Options.MaxHold brought about.
	ErrMaxHold = fmt.Errorf("lock: held for as long as MaxHold allows: %w", ErrExpired)
	// ErrTakenByOther: another holder has been granted the lock since.
	ErrTakenByOther = errors.New("lock: taken by another")
	// ErrLost: the lock is gone from Redis, deleted or forced open.
	ErrLost = errors.New("lock: lost")
	// ErrReleased: the lock was released by its holder.
	ErrReleased = errors.New("lock: released")
)

// What a call was given that it cannot use.
var (
	// ErrKey: the key is empty.
	ErrKey = errors.New("lock: the key is empty: say what is locked")
	// ErrOwner: the owner is empty.
	ErrOwner = errors.New("lock: the owner is empty: pass As what its holds have in common")
	// ErrLease: the lease that Extend was given is out of range.
	ErrLease = fmt.Errorf("lock: the lease is out of range: use %v to %v", MinLease, MaxLease)
	// ErrTick: the tick is the zero time, or the Rerun is neither Never nor Again.
	ErrTick = errors.New("lock: Once needs the instant that its tick is scheduled for, and Never or Again")
	// ErrLate: the tick is longer ago than Redis remembers.
	ErrLate = errors.New("lock: the tick is longer ago than FenceRetention: whether it ran is forgotten")
)

// What the program has to mend.
var (
	errLocker = errors.New("lock: a nil or zero Locker: make one with New, and check its error first")
	errLock   = errors.New("lock: a nil or zero Lock: Try or Acquire returned an error, check it first")
	errFn     = errors.New("lock: fn is nil: say what to run")
)

var errRing = fmt.Errorf("%w: rdb is a Ring, whose clients can disagree about which server has a lock, and then two hold it: "+
	"use a Client, a failover Client or a ClusterClient", script.ErrClient)

// isLoss says of an error that the lock ended before it was released.
func isLoss(err error) bool {
	return errors.Is(err, ErrExpired) || errors.Is(err, ErrTakenByOther) || errors.Is(err, ErrLost)
}
