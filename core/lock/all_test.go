package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestAcquireAllGetsAllOrNone: the locks of all keys, each with its fence; none if one of
// them is held for longer than the wait.
func TestAcquireAllGetsAllOrNone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, calm(lock.Options{}))
		other := locker(t, rdb, prefix, calm(lock.Options{Wait: 50 * time.Millisecond, RetryDelay: 5 * time.Millisecond}))
		keys := []string{"c", "a", "b", "a"}
		held, err := l.AcquireAll(t.Context(), keys...)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if s, err := l.Inspect(t.Context(), key); err != nil || !s.Held || s.Fence != held.Fence(key) {
				t.Errorf("%s: got %+v, %v, want it held with the fence %d", key, s, err, held.Fence(key))
			}
		}
		if held.Fence("d") != 0 || held.Err() != nil || l.Stats().Holding != 3 {
			t.Errorf("got the fence %d of a key that was not asked for, Err %v, %d held, want 0, nil and 3", held.Fence("d"), held.Err(), l.Stats().Holding)
		}
		ctx := held.Context()
		if _, err := other.AcquireAll(t.Context(), "x", "b", "0"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("AcquireAll with a key that is held: got %v, want ErrHeld", err)
		}
		for _, key := range []string{"x", "0"} { // one after it, and one before it, which it held while it waited
			freeSoon(t, l, key)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("Release: got %v, want no error", err)
		}
		<-ctx.Done()
		if err := context.Cause(ctx); !errors.Is(err, lock.ErrReleased) || !errors.Is(held.Err(), lock.ErrReleased) {
			t.Errorf("after Release: got the cause %v and Err %v, want ErrReleased", err, held.Err())
		}
		for _, key := range keys {
			freeSoon(t, other, key)
		}
	})
}

// TestAcquireAllDoesNotOvertake the callers of its own process that wait for one of the
// locks: also if the lock is free, and they do not know it yet.
func TestAcquireAllDoesNotOvertake(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		try(t, locker(t, rdb, prefix, unasking()))
		l := locker(t, rdb, prefix, unasking())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = l.Acquire(ctx, "key") }()
		lineHas(t, admin, recordOf(prefix, "key"), 1)
		if err := admin.Del(t.Context(), recordOf(prefix, "key")).Err(); err != nil {
			t.Fatal(err)
		}
		const wait = 100 * time.Millisecond
		late, err := l.WithWait(wait)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		held, err := late.AcquireAll(t.Context(), "key", "another")
		if took := time.Since(began); err != nil || took < wait {
			t.Fatalf("got %v, %v after %v, want the locks when the wait for the one before is over", held, err, took)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}, redistest.OnStandalone)
}

// TestTheLossOfOneLockEndsTheContextOfAll, and DoAll says which way it was lost.
func TestTheLossOfOneLockEndsTheContextOfAll(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, &lock.Options{Lease: 15 * time.Second})
		other := locker(t, rdb, prefix, nil)
		err := l.DoAll(t.Context(), []string{"a", "b", "c"}, func(ctx context.Context, held *lock.Locks) error {
			if was, err := other.ForceRelease(t.Context(), "b"); !was || err != nil {
				t.Errorf("ForceRelease: got %v, %v, want true and no error", was, err)
			}
			if one, ok := lock.FromContext(ctx); ok {
				t.Errorf("FromContext: got a lock with the fence %d, want none", one.Fence())
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrLost) || !errors.Is(held.Err(), lock.ErrLost) {
				t.Errorf("after the loss: got the cause %v and Err %v, want ErrLost", cause, held.Err())
			}
			return nil
		})
		if !errors.Is(err, lock.ErrLost) {
			t.Errorf("DoAll: got %v, want ErrLost", err)
		}
		for _, key := range []string{"a", "b", "c"} {
			freeSoon(t, other, key)
		}
	})
}

// TestAcquireAllWaitsOnce for all keys together.
func TestAcquireAllWaitsOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		const wait = time.Second
		l, other := locker(t, rdb, "neap", &lock.Options{Wait: wait}), locker(t, rdb, "neap", nil)
		for _, key := range []string{"a", "b"} {
			held, err := other.Try(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if key == "a" {
				time.AfterFunc(wait*8/10, func() { release(t, held) })
			}
		}
		began := time.Now()
		_, err := l.AcquireAll(t.Context(), "a", "b")
		if took := time.Since(began); !errors.Is(err, lock.ErrHeld) || took != wait {
			t.Errorf("got %v after %v, want ErrHeld after %v", err, took, wait)
		}
		if held, err := other.Try(t.Context(), "a"); err != nil {
			t.Errorf("then: got %v, want the lock that it got first", err)
		} else {
			release(t, held)
		}
	})
}

// TestALossWhileAcquireAllWaits for another lock is its error, and nothing stays locked.
func TestALossWhileAcquireAllWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		l, other := locker(t, rdb, "neap", &lock.Options{Lease: 3 * time.Second}), locker(t, rdb, "neap", nil)
		held, err := other.Try(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			_, err := l.AcquireAll(t.Context(), "a", "b")
			got <- err
		}()
		time.Sleep(time.Second)
		if was, err := other.ForceRelease(t.Context(), "a"); !was || err != nil {
			t.Errorf("ForceRelease: got %v, %v, want true and no error", was, err)
		}
		time.Sleep(2 * time.Second)
		release(t, held)
		if err := <-got; !errors.Is(err, lock.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		for _, key := range []string{"a", "b"} {
			if s, err := other.Inspect(t.Context(), key); err != nil || s.Held {
				t.Errorf("%s: got %+v, %v, want it free", key, s, err)
			}
		}
	})
}

// TestAPanicReleasesAllLocks, and propagates.
func TestAPanicReleasesAllLocks(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		l := locker(t, rdb, "neap", nil)
		func() {
			defer func() {
				if p := recover(); p != errJob {
					t.Errorf("got the panic %v, want %v", p, errJob)
				}
			}()
			_ = l.DoAll(t.Context(), []string{"a", "b"}, func(context.Context, *lock.Locks) error { panic(errJob) })
		}()
		for _, key := range []string{"a", "b"} {
			if s, err := l.Inspect(t.Context(), key); err != nil || s.Held {
				t.Errorf("%s: got %+v, %v, want it free", key, s, err)
			}
		}
	})
}

// TestReleaseJoinsWhatEachSays of the locks that were lost.
func TestReleaseJoinsWhatEachSays(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		l, other := locker(t, rdb, "neap", nil), locker(t, rdb, "neap", nil)
		held, err := l.AcquireAll(t.Context(), "a", "b", "c")
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "b"} {
			if was, err := other.ForceRelease(t.Context(), key); !was || err != nil {
				t.Errorf("ForceRelease of %s: got %v, %v, want true and no error", key, was, err)
			}
		}
		if _, err := other.Try(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		if err := held.Release(t.Context()); !errors.Is(err, lock.ErrLost) || !errors.Is(err, lock.ErrTakenByOther) {
			t.Errorf("got %v, want ErrLost of one and ErrTakenByOther of another", err)
		}
	})
}

// TestCallersOfSeveralLocksDoNotWaitForEachOther, whatever keys they ask for and in
// whatever order: all get their turn, and no two hold a key at once.
func TestCallersOfSeveralLocksDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		keys := []string{"a", "b", "c", "d", "e"}
		inside := map[string]*atomic.Int64{}
		for _, key := range keys {
			inside[key] = new(atomic.Int64)
		}
		rng := redistest.Rand(t)
		var all sync.WaitGroup
		for range 3 {
			l := locker(t, rdb, prefix, calm(lock.Options{Wait: time.Minute}))
			for range 3 {
				var asks [][]string
				for range redistest.Ops(60) {
					some := slices.Clone(keys)
					rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
					asks = append(asks, some[:1+rng.IntN(len(some)-1)])
				}
				all.Go(func() {
					for _, some := range asks {
						err := l.DoAll(t.Context(), some, func(context.Context, *lock.Locks) error {
							for _, key := range some {
								if n := inside[key].Add(1); n != 1 {
									t.Errorf("%s: got %d holders at once, want 1", key, n)
								}
							}
							for _, key := range some {
								inside[key].Add(-1)
							}
							return nil
						})
						if err != nil {
							t.Errorf("DoAll of %q: got %v, want no error", some, err)
						}
					}
				})
			}
		}
		all.Wait()
	})
}

// far counts what is sent to a server that is so far away that all callers of an AcquireAll
// have come before the first has its answer, on a busy machine too.
type far struct{ redistest.CountingHook }

func (h *far) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	send := h.CountingHook.ProcessHook(next)
	return func(ctx context.Context, cmd redis.Cmder) error {
		<-time.After(100 * time.Millisecond)
		return send(ctx, cmd)
	}
}

// TestAcquireAllTakesFewRoundTrips if all locks are free: the calls go in batches.
func TestAcquireAllTakesFewRoundTrips(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	sent := new(far)
	rdb := srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	rdb.AddHook(sent)
	st := storetest.Open(t, rdb, store.Options{Prefix: srv.Prefix(t), Queue: store.Queued})
	l, err := lock.New(st, "test", calm(lock.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	redistest.Await(t, time.Minute, "20 locks and their release, 40 calls, in 6 round trips", func() bool {
		before := sent.Trips.Load()
		held, err := l.AcquireAll(t.Context(), keys...)
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		return sent.Trips.Load()-before <= 6
	})
}

// TestAcquireAllRefuses what Acquire refuses, before it asks, and leaves nothing behind if
// one of the calls has no answer.
func TestAcquireAllRefuses(t *testing.T) {
	t.Parallel()
	f, l := fakeLocker(t, nil)
	for want, ask := range map[error]func() error{
		lock.ErrKey:   func() error { _, err := l.AcquireAll(t.Context()); return err },
		lock.ErrOwner: func() error { _, err := l.As("").AcquireAll(t.Context(), "a"); return err },
	} {
		if err := ask(); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if _, err := l.AcquireAll(t.Context(), "a", ""); !errors.Is(err, lock.ErrKey) || len(f.of("acquire")) != 0 {
		t.Errorf("an empty key: got %v and %d questions, want ErrKey and none", err, len(f.of("acquire")))
	}
	if err := l.DoAll(t.Context(), []string{"a"}, nil); err == nil {
		t.Error("DoAll of nothing: got no error, want one")
	}
	var lost atomic.Value
	f.answer(func(n int, c call) (any, error) {
		if c.script == "acquire" { // all calls for the first hold are lost
			if lost.CompareAndSwap(nil, c.args[1]); lost.Load() == c.args[1] {
				return refuse()
			}
		}
		return yes(n, c)
	})
	if _, err := l.AcquireAll(t.Context(), "a", "b", "c"); !errors.Is(err, script.ErrMaybeExecuted) {
		t.Errorf("a call without an answer: got %v, want ErrMaybeExecuted", err)
	}
	redistest.Await(t, soon, "each lock to be given back", func() bool { return l.Stats().Holding == 0 && len(f.of("release")) >= 3 })
}
