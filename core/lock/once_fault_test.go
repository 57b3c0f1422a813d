package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// behind is a client whose replies go through a proxy that loses some.
func behind(t *testing.T) (srv *redistest.Server, rdb *redis.Client, proxy *redistest.Proxy, prefix string) {
	t.Helper()
	srv = redistest.Standalone(t)
	proxy = srv.Proxy(t)
	return srv, srv.Client(t, func(o *redis.Options) { o.Dialer = proxy.Dial }), proxy, srv.Prefix(t)
}

// TestOnceWithALostReply loses one reply, of the start or of the end. Once asks again,
// and Redis says what became of the first call.
func TestOnceWithALostReply(t *testing.T) {
	t.Parallel()
	for _, fault := range []redistest.Fault{redistest.EOF, redistest.Reset} {
		for _, rerun := range bothWays {
			for _, atEnd := range []bool{false, true} {
				t.Run(fmt.Sprint(fault, rerun, atEnd), func(t *testing.T) {
					t.Parallel()
					srv, rdb, proxy, prefix := behind(t)
					l, tick := patient(t, rdb, prefix), aTick()
					assertRan(t, l, "warm", tick, rerun, true)
					lose := func() { proxy.Lose(fault, 1, "evalsha") }
					if !atEnd {
						lose()
					}
					runs := 0
					ran, err := l.Once(t.Context(), "job", tick, rerun, func(context.Context) error {
						runs++
						if atEnd {
							lose()
						}
						return nil
					})
					if !ran || runs != 1 || err != nil || proxy.Lost() != 1 {
						t.Errorf("Once: got ran %v, %d runs, %v and %d replies lost, want true, 1, no error and 1",
							ran, runs, err, proxy.Lost())
					}
					assertRan(t, patient(t, srv.Client(t), prefix), "job", tick, rerun, false)
				})
			}
		}
	}
}

// hasty is a locker with a short budget.
func hasty(t testing.TB, rdb redis.UniversalClient, prefix string, budget time.Duration) *lock.Locker {
	t.Helper()
	return locker(t, rdb, prefix, &lock.Options{
		Budget: budget, RetryDelay: 10 * time.Millisecond, FenceRetention: time.Hour,
	})
}

// TestOnceWithoutAReplyToItsStart delays the replies to a start until it is too late.
// With Never the start is taken back, and the next caller runs the tick. With Again Once
// asks until there is an answer, and finds its own grant.
func TestOnceWithoutAReplyToItsStart(t *testing.T) {
	t.Parallel()
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		srv, rdb, proxy, prefix := behind(t)
		l, tick := hasty(t, rdb, prefix, 2*time.Second), aTick()
		assertRan(t, patient(t, rdb, prefix), "warm", tick, lock.Never, true)
		proxy.Lose(redistest.Silence, 1, "evalsha")
		ran, err := l.Once(t.Context(), "job", tick, lock.Never, func(context.Context) error {
			t.Error("Once with Never: got a run though the start has no answer, want none")
			return nil
		})
		if ran || !errors.Is(err, script.ErrMaybeExecuted) {
			t.Errorf("Once with Never: got ran %v, %v, want false and ErrMaybeExecuted", ran, err)
		}
		redistest.Await(t, 20*time.Second, "the start to be taken back", func() bool { return l.Stats().Undone == 1 })
		assertRan(t, patient(t, srv.Client(t), prefix), "job", tick, lock.Never, true)
		assertRan(t, patient(t, srv.Client(t), prefix), "job", tick, lock.Never, false)
	})
	t.Run("never, and its context ended", func(t *testing.T) {
		t.Parallel()
		srv, rdb, proxy, prefix := behind(t)
		l, tick := patient(t, rdb, prefix), aTick()
		assertRan(t, l, "warm", tick, lock.Never, true)
		proxy.Lose(redistest.Silence, 1, "evalsha")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if ran, err := l.Once(ctx, "job", tick, lock.Never, fine); ran || err != context.DeadlineExceeded {
			t.Errorf("Once until its deadline: got ran %v, %v, want false and DeadlineExceeded", ran, err)
		}
		redistest.Await(t, 20*time.Second, "the start to be taken back", func() bool { return l.Stats().Undone == 1 })
		assertRan(t, patient(t, srv.Client(t), prefix), "job", tick, lock.Never, true)
	})
	t.Run("again", func(t *testing.T) {
		t.Parallel()
		srv, rdb, proxy, prefix := behind(t)
		l, tick := hasty(t, rdb, prefix, 2*time.Second), aTick()
		assertRan(t, patient(t, rdb, prefix), "warm", tick, lock.Again, true)
		proxy.Lose(redistest.Silence, 1, "evalsha")
		runs := 0
		ran, err := l.Once(t.Context(), "job", tick, lock.Again, func(context.Context) error {
			runs++
			return nil
		})
		if !ran || runs != 1 || err != nil || proxy.Lost() != 1 {
			t.Errorf("Once: got ran %v, %d runs, %v and %d replies lost, want true, 1, no error and 1",
				ran, runs, err, proxy.Lost())
		}
		assertRan(t, patient(t, srv.Client(t), prefix), "job", tick, lock.Again, false)
	})
}

// TestOnceWithoutAReplyToItsEnd delays all replies to the end. The caller does not know
// whether the run has completed, and neap notes it in the background.
func TestOnceWithoutAReplyToItsEnd(t *testing.T) {
	t.Parallel()
	for _, rerun := range bothWays {
		t.Run(rerun.String(), func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			prefix := srv.Prefix(t)
			l, tick := hasty(t, srv.Client(t), prefix, 2*time.Second), aTick()
			ran, err := l.Once(t.Context(), "job", tick, rerun, func(context.Context) error {
				srv.Pause(t)
				return nil
			})
			if !ran || !errors.Is(err, script.ErrMaybeExecuted) {
				t.Errorf("Once whose end has no answer: got ran %v, %v, want true and ErrMaybeExecuted", ran, err)
			}
			if n := l.Stats().Undoing; n != 1 {
				t.Errorf("got %d ends in the background, want 1", n)
			}
			srv.Resume(t)
			// With Again, Once waits until the first run has completed.
			assertRan(t, patient(t, srv.Client(t), prefix), "job", tick, rerun, false)
			redistest.Await(t, 20*time.Second, "the end in the background", func() bool { return l.Stats().Undoing == 0 })
		})
	}
}

// TestOnceWhileRedisIsAway asks for a tick before Redis is there. It then stops and
// starts Redis while one process runs a tick and another waits for it.
func TestOnceWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	const budget = 3 * time.Second
	a, b, tick := hasty(t, srv.Client(t), prefix, budget), hasty(t, srv.Client(t), prefix, budget), aTick()

	t.Log("asked for while Redis is away")
	srv.Stop(t)
	brief, cancel := context.WithTimeout(t.Context(), 2*budget)
	defer cancel()
	ran, err := a.Once(brief, "away", tick, lock.Again, fine)
	// The deadline may cut the last call short at any moment.
	if _, unheard := errors.AsType[*script.Error](err); ran || !errors.Is(err, context.DeadlineExceeded) || !unheard {
		t.Errorf("Once with Again without Redis: got ran %v, %v, want false, DeadlineExceeded and a script.Error",
			ran, err)
	}
	// On a busy machine the last call may not learn in time that it was not sent.
	ran, err = a.Once(t.Context(), "away", tick, lock.Never, fine)
	if _, unheard := errors.AsType[*script.Error](err); ran || !unheard {
		t.Errorf("Once with Never without Redis: got ran %v, %v, want false and a script.Error", ran, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		assertRan(t, a, "back", tick, lock.Again, true)
	}()
	redistest.Await(t, 20*time.Second, "it to wait for Redis", func() bool { return a.Stats().Waiting == 1 })
	srv.Start(t)
	<-done

	t.Log("away during the run")
	begun := make(chan struct{})
	done = make(chan struct{})
	go func() {
		defer close(done)
		<-begun
		ran, err := b.Once(t.Context(), "job", tick, lock.Again, fine)
		if ran || err != nil {
			t.Errorf("Once by the waiter: got ran %v, %v, want false and no error", ran, err)
		}
	}()
	ran, err = a.Once(t.Context(), "job", tick, lock.Again, func(ctx context.Context) error {
		close(begun)
		redistest.Await(t, 20*time.Second, "another to wait", func() bool { return b.Stats().Waiting == 1 })
		if err := srv.Admin(t).Save(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		srv.Stop(t)
		return nil
	})
	if _, unheard := errors.AsType[*script.Error](err); !ran || !unheard {
		t.Errorf("Once without Redis at its end: got ran %v, %v, want true and a script.Error", ran, err)
	}
	srv.Start(t)
	<-done
}

// TestOnceOnAFullServer leaves Redis without memory and without scripts while a tick
// runs. Redis still notes that it completed, and no other tick begins.
func TestOnceOnAFullServer(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	l := patient(t, srv.Client(t), prefix)
	for _, rerun := range bothWays {
		job, tick := rerun.String(), aTick()
		ran, err := l.Once(t.Context(), job, tick, rerun, func(ctx context.Context) error {
			if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
				t.Error(err)
			}
			if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
				t.Error(err)
			}
			brief, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if ran, err := l.Once(brief, job+"-other", tick, rerun, fine); ran || !errors.Is(err, script.ErrNotExecuted) {
				t.Errorf("Once of another tick in full memory: got ran %v, %v, want false and ErrNotExecuted",
					ran, err)
			}
			return nil
		})
		if !ran || err != nil {
			t.Errorf("%v: Once in full memory: got ran %v, %v, want true and no error", rerun, ran, err)
		}
		assertRan(t, l, job, tick, rerun, false)
		if err := admin.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
			t.Fatal(err)
		}
		assertRan(t, l, job, tick, rerun, false)
		assertRan(t, l, job+"-other", tick, rerun, true)
	}
}
