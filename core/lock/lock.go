package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// Lock is a lock that was granted. It is safe for concurrent use. The zero Lock
// is not usable.
//
// It is held until Release, MaxHold, or until it is lost: Redis could not be
// reached for a TTL, the process slept for as long, or the lock was deleted or
// forced open. Err and Context tell, and what must not be done twice carries
// the Fence.
type Lock struct {
	of *shared
	bid
	fence  int64
	parent context.Context
	given  bool // by another of this process, which is noted as having the lock
	lease  lease.Lease

	release sync.Once
	outcome error
}

// Fence is the fencing number, which grows with each grant of the key: across
// release, expiry, ForceRelease and restarts of Redis, and when its clock is
// set back by less than FenceRetention. Holds of one owner that overlap have
// the same. A store that refuses what carries a smaller one than it has seen
// cannot be written to by who has lost the lock:
//
//	UPDATE orders SET state = $2, fence = $1 WHERE id = $3 AND fence < $1
//
// The idea is Martin Kleppmann's, "How to do distributed locking" (2016). It
// costs nothing.
func (l *Lock) Fence() int64 {
	misuse.Made(l.made(), errLock)
	return l.fence
}

func (l *Lock) made() bool { return l != nil && l.of != nil }

// Err is nil while the lock is held, [ErrReleased] once Release was called, and
// otherwise says how it was lost: [ErrExpired], [ErrMaxHold], [ErrTakenByOther]
// or [ErrLost]. It compares clocks and asks nobody: after a pause of the process
// it is right at once, while of a lock that was deleted, forced open or taken
// over it knows after a third of the TTL and the budget; with NoRenewal only
// Extend and Release do.
func (l *Lock) Err() error {
	if !l.made() {
		return errLock
	}
	return l.lease.Err()
}

// Context is a context of the one that the lock was asked for with. It ends,
// with what Err says as its cause, when the lock is lost or released: before
// the lease can lapse in Redis where that cannot be reached.
func (l *Lock) Context() context.Context {
	misuse.Made(l.made(), errLock)
	return l.lease.Context()
}

type contextKey struct{}

// FromContext is the lock that ctx ends with: that of [Locker.Do], of
// [Locker.Once] or of a gate.
func FromContext(ctx context.Context) (*Lock, bool) {
	misuse.Context(ctx)
	l, ok := ctx.Value(contextKey{}).(*Lock)
	return l, ok
}

// Extend has the lease last for at least ttl from now on, MinTTL to MaxTTL in
// whole milliseconds; it never brings its end forward, and never moves it beyond
// MaxHold. It costs one round trip. It is of use with NoRenewal; a lock that is
// renewed lasts anyway.
//
// The error is what Err says when the lock is lost or released, [ErrTTL], ctx.Err()
// when the caller's context ended, and a [*script.Error] when Redis could not
// answer: then the lock may last longer or not, and Err is still right.
func (l *Lock) Extend(ctx context.Context, ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL {
		return ErrTTL
	}
	if err := l.Err(); err != nil {
		return err
	}
	return l.lease.Extend(ctx, ttl)
}

// Release gives the lock back, and ends its Context. It may be called any
// number of times, at once too, and all return what the first does. It does
// not end with ctx, of which it takes the values alone, but within the budget.
// It costs one round trip.
//
// The error is nil when the lock was held until then. It says how the lock was
// lost when it was, which Err need not have known; and it is a [*script.Error]
// when Redis did not confirm the release: it goes on in the background, or, where
// Redis had the hold no more when it was asked again, nobody knows why.
func (l *Lock) Release(ctx context.Context) error {
	if !l.made() {
		return errLock
	}
	ctx = endless(ctx)
	l.release.Do(func() { l.outcome = l.released(ctx) })
	return l.outcome
}

// endless is ctx without its end.
func endless(ctx context.Context) context.Context {
	misuse.Context(ctx)
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

func (l *Lock) released(ctx context.Context) error {
	n, doubted, lost, err := l.conclude(ctx, failed)
	if err != nil {
		if lost != nil {
			return lost
		}
		return err
	}
	verdict := verdict(n, doubted)
	switch {
	case verdict == nil, lost != nil && n == lapsed: // ErrMaxHold says more
		return lost
	case lost != nil:
		return verdict
	case doubted && n != lapsed:
		return errGone
	}
	l.of.count.lost.Add(1)
	return verdict
}

// conclude ends the hold, here and in Redis; lost is how it had ended before. An
// end that Redis does not confirm goes on in the background.
func (l *Lock) conclude(ctx context.Context, how conclusion) (n int64, doubted bool, lost, err error) {
	lost = l.lease.End(ErrReleased)
	end := l.ending(l.of, l.fence, how)
	last, passes := uint64(0), false
	if lost == nil && l.run == nil && l.line == "" && l.doubt.Calls == 0 { // what may be granted again must not go on again
		last, passes = l.of.lines.heir(l.key)
	}
	asked := time.Now()
	switch {
	case lost != nil:
		n, doubted, err = end(ctx)
	case passes:
		n, doubted, err = l.pass(ctx, last)
	default:
		n, doubted, err = end(ctx)
		defer l.of.lines.free(l.key, l.line)
	}
	if err != nil {
		l.of.takeBack(ask.Doubt{Last: asked, Calls: 1 + l.doubt.Calls}, l.doubt.Calls == 0, end)
	} else if l.doubt.Calls > 0 {
		l.of.takeBack(l.doubt, false, l.ending(l.of, l.fence, failed))
	}
	return n, doubted, lost, err
}

// errGone: nobody knows whether a release ended the hold, or somebody else.
var errGone error = &script.Error{
	Script: releaseScript.Name(), Class: script.ErrMaybeExecuted,
	Err: errors.New("no answer, and when asked again Redis had the hold no more"),
}
