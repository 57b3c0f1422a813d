package lock

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/store"
)

// Try asks for the lock once and does not wait.
//
//	held, err := locker.Try(ctx, "order-17")
//	if err != nil {
//		return err
//	}
//	defer held.Release(ctx)
//
// Any key but the empty one will do. Redis stores a long or unusual key as its hash. The
// error of Release says whether the lock was held to the end; Do checks it for you.
//
// Try returns
//
//   - [ErrHeld] if another holder has the lock, or the lock is free and waits for the
//     process that is next in line;
//   - [ErrKey] for an empty key, and [ErrOwner] for an empty owner of [Locker.As];
//   - ctx.Err() if the caller's context ended;
//   - a [*script.Error] if Redis could not answer within the budget;
//   - [ErrExpired] if the lease was over when the answer came: the process slept, or the
//     first connection took longer.
//
// Redis may grant a lock although its answer is lost. Such a lock is released in the
// background. A Locker looks for up to 100,000 such locks at a time, in some 60 MB of
// memory. It looks for a lock beyond that once at most. If that does not find the lock,
// no caller can get it until its lease is over. Stats counts these locks as Undoing and
// Lapsing.
//
// Try costs one round trip, and so does Release. In between, each third of the lease
// costs another round trip, for the renewal.
func (l *Locker) Try(ctx context.Context, key string) (*Lock, error) {
	b, err := l.bid(ctx, key)
	if err != nil {
		return nil, err
	}
	held, _, err := l.attempt(ctx, b, "")
	if err == nil && held == nil {
		err = ErrHeld
	}
	return l.finish(ctx, b, held, err)
}

// Acquire waits for a lock that is held. Otherwise it is like Try. It waits for
// Options.Wait at most, and no longer than ctx. It returns [ErrHeld] if the wait was in
// vain, and ctx.Err() if ctx ended first.
//
// Callers in one process queue per key and owner (see [Locker.As]). Only the first in
// each queue asks Redis, and each queue is served in order. A release wakes the callers of
// its own process, and the process that is next in line.
//
// Processes that wait stand in line, each once: a release tells the first of them alone, and
// the lock waits for that process for up to 100 ms. So a process with many callers gets no
// more turns than others. Two Lockers of one name in a process count as two. A process whose
// client Redis does not let subscribe has no place in the line. It asks again after each
// RetryDelay, and gets no lock for which two others always wait.
//
// While no other process is known to wait, a release hands the lock off to the first caller
// in the queue of its own process. After 5 ms of that, the lock is released and asked for
// again, so that processes without a place can get it. Holds of a named owner are not handed
// off.
//
// Acquire costs one round trip if the lock is free, and none if a release hands it off. If
// the lock is held, the first in the queue asks again when it is told and when a RetryDelay
// has passed. The others ask once, when their wait is over. If no caller waits any more, one
// more call takes the process out of the line, in the background. While callers wait, the
// process has one more connection to each server that has their locks.
func (l *Locker) Acquire(ctx context.Context, key string) (*Lock, error) {
	b, err := l.bid(ctx, key)
	if err != nil {
		return nil, err
	}
	held, err := l.await(ctx, b, l.wait)
	return l.finish(ctx, b, held, err)
}

// attempt asks once. If another holder has the lock, it returns no lock and no error, but
// the time until the lease of that holder ends.
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
		b.doubt = ask.Doubt{} // Release has taken it back
		return nil, 0, ErrExpired
	}
	return held, 0, nil
}

func (s *shared) bring(ctx context.Context, b *bid, wake string) (int64, time.Time, ask.Doubt, error) {
	if b.run != nil {
		return s.ask(ctx, startScript, b.key, b.hold, s.ttl, s.keep, number(b.run.tick), b.run.rerun.String(), wake)
	}
	if wake != "" {
		s.queues.stand(b.key)
	}
	return s.ask(ctx, acquireScript, b.key, b.owner, b.hold, s.ttl, s.keep, wake, s.place)
}

// finish counts the result. If the bid failed, finish takes back what Redis may have
// granted.
func (s *shared) finish(ctx context.Context, b *bid, held *Lock, err error) (*Lock, error) {
	err = b.doubt.Worst(err)
	outcome := s.count.finished(err)
	if held == nil && b.doubt.Calls > 0 {
		s.takeBack(b.doubt, false, b.ending(s, 0, failed))
	}
	told := false
	defer func() { // an observer may end the goroutine, and then no caller gets the grant
		if !told && held != nil {
			background.Go(func() { _ = held.Release(context.Background()) })
		}
	}()
	ask.Notify(ctx, s.store, store.Event{Primitive: store.Lock, Name: s.name, Outcome: outcome}, b.began, err)
	told = true
	return held, err
}
