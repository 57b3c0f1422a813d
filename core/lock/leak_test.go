package lock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// TestNothingLeaks takes locks with and without rivals, drops some while the server is
// down, and compares goroutines and connections before and after. It runs alone.
func TestNothingLeaks(t *testing.T) { //nolint:paralleltest // it counts goroutines
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	connections := func() int { return strings.Count(admin.ClientList(t.Context()).Val(), "user="+redistest.User+" ") }
	before, was := redistest.Settled(runtime.NumGoroutine), connections()

	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: redistest.User, Password: redistest.Password, ContextTimeoutEnabled: true})
	l := locker(t, rdb, prefix, &lock.Options{Lease: 15 * time.Second, RetryDelay: 20 * time.Millisecond, Wait: time.Minute})
	second := locker(t, rdb, prefix, &lock.Options{Lease: 15 * time.Second, RetryDelay: 20 * time.Millisecond, Wait: time.Minute})
	short := locker(t, rdb, prefix, &lock.Options{Lease: 50 * time.Millisecond, NoRenewal: true})
	ctx := t.Context()
	var wg sync.WaitGroup
	n := redistest.Ops(10_000)
	for i := range 10 {
		wg.Go(func() {
			for j := range n / 10 {
				switch {
				case j%10 == 0: // rivals: two lockers, like two processes
					by := []*lock.Locker{l, second}[i%2]
					if err := by.Do(ctx, "key", func(ctx context.Context) error { return ctx.Err() }); err != nil {
						t.Errorf("Do among rivals: got %v, want no error", err)
					}
				case j%50 == 1: // dropped, so that it lapses
					if held, err := short.Try(ctx, fmt.Sprint(i, j)); err == nil {
						<-held.Context().Done()
					}
				case j%50 == 2: // dropped by its caller
					gone, cancel := context.WithTimeout(ctx, time.Duration(j%7)*100*time.Microsecond)
					if held, err := l.Acquire(gone, fmt.Sprint(i, j)); err == nil {
						_ = held.Context()
						_ = held.Release(gone)
					}
					cancel()
				default:
					held, err := l.Try(ctx, fmt.Sprint(i))
					if err != nil {
						t.Errorf("Try without rivals: got %v, want no error", err)
						return
					}
					_ = held.Context()
					if err := held.Release(ctx); err != nil {
						t.Errorf("Release: got %v, want no error", err)
					}
				}
			}
		})
	}
	wg.Wait()

	away := locker(t, rdb, prefix, &lock.Options{Lease: 500 * time.Millisecond, Budget: 50 * time.Millisecond})
	var dropped []*lock.Lock
	for i := range 20 {
		if held, err := away.Try(ctx, fmt.Sprint("away", i)); err == nil {
			dropped = append(dropped, held)
		}
	}
	srv.Pause(t)
	for i, held := range dropped {
		if i%2 == 0 {
			_ = held.Release(ctx)
		} else {
			<-held.Context().Done()
		}
	}
	srv.Resume(t)
	redistest.Await(t, time.Minute, "the end of all", func() bool {
		for _, l := range []*lock.Locker{l, second, short, away} {
			if s := l.Stats(); s.Holding+s.Waiting+s.Undoing > 0 {
				return false
			}
		}
		return true
	})
	redistest.Await(t, 10*time.Second, "no subscription", func() bool {
		return len(admin.PubSubChannels(ctx, "*").Val()) == 0 && !strings.Contains(admin.ClientList(ctx).Val(), "cmd=subscribe")
	})
	idle := connections()
	if pool := redistest.Connections(rdb); idle > was+pool {
		t.Errorf("got %d connections, want at most the %d before and %d of the pool", idle, was, pool)
	}
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
	redistest.Await(t, 10*time.Second, "no connection", func() bool { return connections() == was })
	var after int
	for deadline := time.Now().Add(10 * time.Second); ; {
		if after = redistest.Settled(runtime.NumGoroutine); after <= before {
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("got %d goroutines, want at most %d as before:\n%s", after, before, stacks[:runtime.Stack(stacks, true)])
}

// free waits until the key has no holder and no waiter.
func free(t *testing.T, l *lock.Locker, key string) {
	t.Helper()
	var state lock.State
	redistest.Await(t, 5*time.Second, "the lock to be free", func() bool {
		var err error
		state, err = l.Inspect(t.Context(), key)
		return err == nil && !state.Held && state.Holds == 0
	})
}

// TestCallersCanceledWhileTheyHold: Context ends, but the lock is held until Release.
// Release does not need the context that has ended.
func TestCallersCanceledWhileTheyHold(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, nil)
		why := errors.New("the client went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		held, err := l.Acquire(ctx, "key")
		if err != nil {
			t.Fatal(err)
		}
		inner := held.Context()
		cancel(why)
		<-inner.Done()
		if held.Err() != nil || !errors.Is(context.Cause(inner), why) {
			t.Errorf("after its caller went: got Err %v and the cause %v, want nil and %v",
				held.Err(), context.Cause(inner), why)
		}
		if _, err := l.Try(t.Context(), "key"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("Try while the lock is held: got %v, want ErrHeld", err)
		}
		if err := held.Extend(ctx, time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("Extend with a canceled context: got %v, want context.Canceled", err)
		}
		if err := held.Release(ctx); err != nil {
			t.Errorf("Release with a canceled context: got %v, want no error", err)
		}
		free(t, l, "key")

		ctx, cancel = context.WithCancelCause(t.Context())
		err = l.Do(ctx, "key", func(inner context.Context) error {
			cancel(why)
			<-inner.Done()
			return context.Cause(inner)
		})
		if !errors.Is(err, why) || strings.Contains(err.Error(), "lock:") {
			t.Errorf("Do by a caller that went: got %v, want %v alone", err, why)
		}
		free(t, l, "key")

		if _, err := l.Try(ctx, "key"); !errors.Is(err, context.Canceled) || l.Stats().Canceled != 1 {
			t.Errorf("Try by a caller that went: got %v and stats %+v, want context.Canceled and 1 canceled", err, l.Stats())
		}
		free(t, l, "key")
	})
}

// TestDoThatDoesNotReturn panics, or ends its goroutine. The lock is released all the
// same.
func TestDoThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, nil)
		var inner context.Context
		for name, leave := range map[string]func(){
			"panic": func() { panic("of fn") }, "Goexit": runtime.Goexit,
			"return": func() {},
		} {
			done := make(chan any)
			go func() {
				defer func() { done <- recover() }()
				_ = l.Do(t.Context(), "key", func(ctx context.Context) error { inner = ctx; leave(); return nil })
			}()
			if got := <-done; name == "panic" && got != "of fn" {
				t.Errorf("a panic in Do: recovered %v, want \"of fn\"", got)
			}
			if state, err := l.Inspect(t.Context(), "key"); err != nil || state.Held {
				t.Errorf("Inspect after %s in Do: got %+v, %v, want it not held", name, state, err)
			}
			if !errors.Is(context.Cause(inner), lock.ErrReleased) {
				t.Errorf("the Context after %s in Do: got the cause %v, want ErrReleased", name, context.Cause(inner))
			}
		}
		wrong := errors.New("of fn")
		err := l.Do(t.Context(), "key", func(context.Context) error {
			if _, err := l.ForceRelease(t.Context(), "key"); err != nil {
				t.Errorf("ForceRelease: got %v, want no error", err)
			}
			return wrong
		})
		if !errors.Is(err, wrong) || !errors.Is(err, lock.ErrLost) {
			t.Errorf("Do with its lock lost: got %v, want fn's error and ErrLost", err)
		}
		if got := l.Stats(); got.Granted != 4 || got.Lost != 1 || got.Holding != 0 {
			t.Errorf("got stats %+v, want 4 granted, 1 lost and 0 holding", got)
		}
	})
}
