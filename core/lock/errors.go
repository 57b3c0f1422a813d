package lock

import (
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/script"
)

// These errors say what became of a lock, or of an attempt to get one. If Redis could not
// answer, the error is a [*script.Error] instead.
var (
	// ErrHeld says that another holder has the lock, or that the lock is free and waits for
	// the first process in line.
	ErrHeld = errors.New("lock: held by another")
	// ErrExpired says that the lease was over before the lock was released.
	ErrExpired = errors.New("lock: the lease is over")
	// ErrMaxHold says that Options.MaxHold was over. It wraps [ErrExpired].
	ErrMaxHold = fmt.Errorf("lock: held for as long as MaxHold allows: %w", ErrExpired)
	// ErrTakenByOther says that another holder has been granted the lock since.
	ErrTakenByOther = errors.New("lock: taken by another")
	// ErrLost says that the lock is gone from Redis: it was deleted or forced open.
	ErrLost = errors.New("lock: lost")
	// ErrReleased says that the holder released the lock.
	ErrReleased = errors.New("lock: released")
)

// These errors report an argument that cannot be used.
var (
	// ErrKey says that the key is empty.
	ErrKey = errors.New("lock: the key is empty: say what is locked")
	// ErrOwner says that the owner that As was given is empty.
	ErrOwner = errors.New("lock: the owner is empty: pass As a name for what its holds have in common")
	// ErrLease says that the duration that Extend was given is out of range.
	ErrLease = fmt.Errorf("lock: the lease is out of range: use %v to %v", options.MinLease, options.MaxLease)
	// ErrTick says that the tick is the zero time, or that the Rerun is neither Never nor
	// Again.
	ErrTick = errors.New("lock: Once needs the instant that its tick is scheduled for, and Never or Again")
	// ErrLate says that the tick is longer ago than FenceRetention, so Redis may have
	// forgotten whether it ran.
	ErrLate = errors.New("lock: the tick is longer ago than FenceRetention: whether it ran is forgotten")
)

// These errors report a bug in the calling program.
var (
	errLocker = errors.New("lock: a nil or zero Locker: make one with New, and check its error first")
	errLock   = errors.New("lock: a nil or zero Lock: Try or Acquire returned an error, check it first")
	errLocks  = errors.New("lock: a nil or zero Locks: AcquireAll returned an error, check it first")
	errFn     = errors.New("lock: fn is nil: say what to run")
)

var errRing = fmt.Errorf("%w: rdb is a Ring, whose clients can disagree about which server has a lock, and then two hold it: "+
	"use a Client, a failover Client or a ClusterClient", script.ErrClient)

// isLoss reports whether err says that the lock ended before it was released.
func isLoss(err error) bool {
	return errors.Is(err, ErrExpired) || errors.Is(err, ErrTakenByOther) || errors.Is(err, ErrLost)
}
