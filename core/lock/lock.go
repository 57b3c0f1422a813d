package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/script"
)

// Lock is a lock that was granted. It is safe for concurrent use. The zero Lock is not
// usable.
//
// A lock is held until Release, until MaxHold is over, or until it is lost. It is lost if
// Redis could not be reached for a lease, if the process slept for that long, or if the
// lock was deleted or forced open. Err and Context report the loss. A write that must not
// happen twice should carry the Fence.
type Lock struct {
	of *shared
	bid
	fence  int64
	parent context.Context
	handed bool // another caller of this process handed it over, and the queues already count it
	lease  lease.Lease

	release sync.Once
	outcome error
}

// Fence returns the fencing number of the lock. It grows with each grant of the key: across
// Release, expiry, ForceRelease and restarts of Redis, with two exceptions. One is a clock
// of Redis that is set back by FenceRetention or more. The other is a lost record while the
// clock of Redis is before the last grant. Overlapping holds of one owner have the same
// number.
//
// A database that rejects numbers smaller than the largest it has seen rejects writes
// from a stale holder:
//
//	UPDATE orders SET state = $2, fence = $1 WHERE id = $3 AND fence <= $1
//
// The idea is Martin Kleppmann's, "How to do distributed locking" (2016). Fence sends
// nothing.
func (l *Lock) Fence() int64 {
	misuse.Made(l.made(), errLock)
	return l.fence
}

func (l *Lock) made() bool { return l != nil && l.of != nil }

// Err returns nil while the lock is held, and [ErrReleased] once Release was called.
// Otherwise it says how the lock was lost: [ErrExpired], [ErrMaxHold], [ErrTakenByOther]
// or [ErrLost].
//
// Err compares clocks and sends nothing, so it is right immediately after the process was
// paused. If the lock was deleted, forced open or taken over, a renewal finds out within
// a third of the lease plus the budget. With NoRenewal, only Extend and Release find out.
func (l *Lock) Err() error {
	if !l.made() {
		return errLock
	}
	return l.lease.Err()
}

// Context returns a child of the context that was passed when the lock was asked for. It
// ends when the lock is lost or released, and its cause is what Err returns. If Redis
// cannot be reached, it ends before the lease can lapse in Redis.
func (l *Lock) Context() context.Context {
	misuse.Made(l.made(), errLock)
	return l.lease.Context()
}

type contextKey struct{}

// FromContext returns the lock that ctx belongs to, and false if there is none. ctx is,
// or descends from, the context that [Locker.Do], [Locker.Lead], [Locker.Once] or a gate
// passes to its function, or that of [Lock.Context].
func FromContext(ctx context.Context) (*Lock, bool) {
	misuse.Context(ctx)
	l, ok := ctx.Value(contextKey{}).(*Lock)
	return l, ok
}

// Extend prolongs the lease to at least the given duration from now: 50 ms to 24 h
// in whole milliseconds. It never shortens the lease, and never prolongs it beyond
// MaxHold. You need it only with NoRenewal, because neap renews all other locks. It costs
// one round trip.
//
// Extend returns
//
//   - what Err returns, if the lock is lost or released;
//   - [ErrLease] if the duration is out of range;
//   - ctx.Err() if the caller's context ended;
//   - a [*script.Error] if Redis could not answer. Redis may then have prolonged the
//     lease or not, and Err is still right.
func (l *Lock) Extend(ctx context.Context, lease time.Duration) error {
	if lease < options.MinLease || lease > options.MaxLease {
		return ErrLease
	}
	if err := l.Err(); err != nil {
		return err
	}
	return l.lease.Extend(ctx, lease)
}

// Release gives the lock back and ends its Context. You may call it any number of times,
// also concurrently; every call returns what the first one returns. Release ends within
// one and a half budgets: it asks again if an answer is lost in the first half of one. It does
// not end early with ctx, and uses only the values of ctx. It costs one round trip.
//
// Release returns nil if the lock was held until then. If the lock was lost, it returns
// the loss, even one that Err had not found yet. It returns a [*script.Error] if Redis
// did not confirm the release; the release then goes on in the background. It does not if
// Redis, asked again, says that the hold is gone: the first call or something else may
// have ended it. If a hook of the client ends the goroutine (runtime.Goexit), neap does
// not repeat the release. Every later call returns a *script.Error.
func (l *Lock) Release(ctx context.Context) error {
	if !l.made() {
		return errLock
	}
	ctx = endless(ctx)
	l.release.Do(func() {
		l.outcome = errEnded
		l.outcome = l.end(ctx)
	})
	return l.outcome
}

// endless returns ctx without its deadline and cancellation.
func endless(ctx context.Context) context.Context {
	misuse.Context(ctx)
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

func (l *Lock) end(ctx context.Context) error {
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
	l.of.loss(ctx)
	return verdict
}

// conclude ends the hold here and in Redis; lost says how it had ended before. If Redis
// does not confirm the end, conclude repeats it in the background.
func (l *Lock) conclude(ctx context.Context, how conclusion) (n int64, doubted bool, lost, err error) {
	lost = l.lease.End(ErrReleased)
	end := l.ending(l.of, l.fence, how)
	last, handOff := uint64(0), false
	if lost == nil && l.run == nil && l.queue == "" && l.doubt.Calls == 0 { // a hold that may be granted again must not be handed off
		last, handOff = l.of.queues.successor(l.key)
	}
	asked := time.Now()
	switch {
	case lost != nil:
		n, doubted, err = end(ctx)
	case handOff:
		n, doubted, err = l.handOff(ctx, last)
	default:
		defer l.of.queues.free(l.key, l.queue)
		n, doubted, err = end(ctx)
	}
	if err != nil {
		l.of.takeBack(ask.Doubt{Last: asked, Calls: 1 + l.doubt.Calls}, l.doubt.Calls == 0, end)
	} else if l.doubt.Calls > 0 {
		l.of.takeBack(l.doubt, false, l.ending(l.of, l.fence, failed))
	}
	return n, doubted, lost, err
}

// errGone: the hold is gone. This release may have ended it, or something else did
// before.
var errGone error = &script.Error{
	Script: releaseScript.Name(), Class: script.ErrMaybeExecuted,
	Err: errors.New("no answer; when asked again, Redis no longer had the hold"),
}

// errEnded is what every later call of Release returns if a hook of the client ended the
// goroutine of the call that was to end the hold.
var errEnded error = &script.Error{
	Script: releaseScript.Name(), Class: script.ErrMaybeExecuted,
	Err: errors.New("a hook of the client ended the goroutine of the call that was to end the hold"),
}
