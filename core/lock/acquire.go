package lock

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
)

// Try asks for the lock once. It costs one round trip, and so does Release;
// in between, another for each third of the TTL.
//
//	held, err := locker.Try(ctx, "order-17")
//	if err != nil {
//		return err
//	}
//	defer held.Release(ctx)
//
// Any key will do that is not empty; in Redis a long or unusual one stands as
// its hash. Who wants to know that the lock was held to the end looks at what
// Release returns, as Do does.
//
// The error is [ErrHeld] when somebody else has the lock, [ErrKey] or
// [ErrOwner], ctx.Err() when the caller's context ended, and a [*script.Error]
// when Redis could not answer within the budget; [ErrExpired] when the process
// slept from the question on until the lease was over.
//
// A lock that Redis may have granted although no answer came is given back in the
// background. A Locker looks for 100,000 such locks at a time, in some 60 MB. Beyond
// that it tries once; if it does not find the lock, nobody can have it until its TTL
// is over. Stats counts them as Undoing and Lapsing.
func (l *Locker) Try(ctx context.Context, key string) (*Lock, error) {
	b, err := l.bid(ctx, key)
	if err != nil {
		return nil, err
	}
	held, _, err := l.attempt(ctx, b, "")
	if err == nil && held == nil {
		err = ErrHeld
	}
	return l.told(b, held, err)
}

// Acquire is Try, but waits for a lock that somebody has: for Options.Wait at
// most, and no longer than ctx. Those of one process that wait for a key are
// served in the order in which they came, and only the first asks Redis; each
// owner of [Locker.As] has such a line of its own. Who waits is woken by the
// release, of another process too where Redis lets the client subscribe; without
// that it asks again after each RetryDelay. A release has the first in line of
// its own process hold the lock next without its being free in between, 7 times
// in a row at most and only while no other process is known to wait; holds of
// owners are not handed on so. The error is [ErrHeld] when the wait was in vain,
// and ctx.Err() when ctx ended before it.
//
// It costs one round trip where the lock is free, and none where a release hands
// it on. Where it is not free, the first in line asks again each time that it is
// woken or a RetryDelay has passed, the others when their wait is over, and the
// process has one more connection to each server that has locks for which it
// waits.
func (l *Locker) Acquire(ctx context.Context, key string) (*Lock, error) {
	b, err := l.bid(ctx, key)
	if err != nil {
		return nil, err
	}
	held, err := l.wait(ctx, b, l.opts.Wait)
	return l.told(b, held, err)
}

// attempt asks once. It returns neither a lock nor an error when another has
// the lock, with the time until that lapses.
func (s *shared) attempt(ctx context.Context, b *bid, wake string) (*Lock, time.Duration, error) {
	n, asked, in, err := s.bring(ctx, b, wake)
	b.doubt.Add(in)
	switch {
	case err != nil:
		return nil, 0, err
	case n < 0:
		return nil, time.Duration(-n) * time.Millisecond, nil
	case n == 0:
		return nil, 0, errDone
	}
	held := &Lock{of: s, bid: *b, fence: n, parent: ctx}
	if !held.begin(asked, s.lasts) {
		_ = held.Release(ctx)
		b.doubt = ask.Doubt{} // which Release has seen to
		return nil, 0, ErrExpired
	}
	return held, 0, nil
}

func (s *shared) bring(ctx context.Context, b *bid, wake string) (int64, time.Time, ask.Doubt, error) {
	if b.run != nil {
		return s.ask(ctx, startScript, b.key, b.hold, s.ttl, s.keep, number(b.run.tick), b.run.rerun.String(), wake)
	}
	return s.ask(ctx, acquireScript, b.key, b.owner, b.hold, s.ttl, s.keep, wake)
}

// told counts, and gives back what a bid that came to nothing may have been
// granted.
func (s *shared) told(b *bid, held *Lock, err error) (*Lock, error) {
	s.count.told(err)
	if held == nil && b.doubt.Calls > 0 {
		s.takeBack(b.doubt, false, b.ending(s, 0, failed))
	}
	return held, err
}
