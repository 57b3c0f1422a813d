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
	"github.com/neap-go/neap/internal/storetest"
)

// freeSoon waits until another caller can get the lock.
func freeSoon(t *testing.T, l *lock.Locker, key string) {
	t.Helper()
	redistest.Await(t, soon, key+" to be free", func() bool {
		held, err := l.Try(t.Context(), key)
		if err != nil && !errors.Is(err, lock.ErrHeld) {
			t.Errorf("Try of %s: got %v, want a lock or ErrHeld", key, err)
		}
		return err == nil && held.Release(t.Context()) == nil
	})
}

// TestAcquireInAStoppedServerIsUndone stops the server, lets calls fail, and lets the
// server run again. It then grants locks too late. They are free within two seconds, long
// before their leases end.
func TestAcquireInAStoppedServerIsUndone(t *testing.T) {
	t.Parallel()
	storetest.EachPausedServer(t, func(t *testing.T, srv *storetest.PausedServer) {
		prefix := srv.Prefix(t)
		other := locker(t, srv.Client(t), prefix, nil)
		l := locker(t, srv.Connected(t), prefix, &lock.Options{Budget: srv.Budget})
		if err := errors.Join(l.Warm(t.Context()), other.Warm(t.Context())); err != nil {
			t.Fatal(err)
		}
		calls := map[string]func(context.Context) error{}
		for i := range 10 {
			key := fmt.Sprint("key", i)
			calls[key] = func(ctx context.Context) error {
				ask := l.Try
				if i%2 == 0 {
					ask = l.Acquire
				}
				held, err := ask(ctx, key)
				if held != nil {
					t.Errorf("an ask for %s on a stopped server: got a lock, want none", key)
				}
				return err
			}
		}
		began := time.Now()
		srv.Fail(t, calls, func() {
			redistest.Await(t, 10*time.Second, "some attempts to undo it", func() bool { return time.Since(began) > 1200*time.Millisecond })
		})
		redistest.Await(t, 10*time.Second, "a grant", func() bool { return redistest.CommandStats(t, srv.Admin(t))["hset"].Calls > 0 })
		for key := range calls {
			freeSoon(t, other, key)
		}
		srv.Undone(t)
	})
}

// TestAcquireThatOvertakesItsUndoIsUndone delivers an acquisition after some attempts to
// undo it, and once more after the attempt that undid it.
func TestAcquireThatOvertakesItsUndoIsUndone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		slow := &redistest.DelayedClient{UniversalClient: rdb, SHA: acquireScript.SHA(), Most: 1000}
		l, other := locker(t, slow, prefix, &lock.Options{Budget: 500 * time.Millisecond}), locker(t, rdb, prefix, nil)
		if err := other.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		if held, err := l.Try(t.Context(), "key"); held != nil || !errors.Is(err, script.ErrMaybeExecuted) {
			t.Fatalf("Try that is delayed: got %v, %v, want no lock and ErrMaybeExecuted", held, err)
		}
		began := time.Now()
		redistest.Await(t, 10*time.Second, "the first attempts", func() bool { return time.Since(began) > 350*time.Millisecond })
		for range 2 {
			slow.Deliver(t)
			freeSoon(t, other, "key")
		}
	})
}

// TestAcquireThatComesAfterTheReleaseIsUndone: an acquisition was repeated and granted.
// Its first call is delivered when the lock has been released.
func TestAcquireThatComesAfterTheReleaseIsUndone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		slow := &redistest.DelayedClient{UniversalClient: rdb, SHA: acquireScript.SHA(), Most: 1}
		l, other := locker(t, slow, prefix, nil), locker(t, rdb, prefix, nil)
		if err := other.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		held, err := l.Try(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("the release: got %v, want no error", err)
		}
		slow.Deliver(t)
		freeSoon(t, other, "key")
		redistest.Await(t, 30*time.Second, "the count of it", func() bool { return l.Stats().Undone == 1 })
	})
}

// TestForceReleaseIsNotRepeated: a second call would end the lock of the next holder.
func TestForceReleaseIsNotRepeated(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		other := locker(t, rdb, prefix, nil)
		if err := other.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		first, err := other.Try(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		var next *lock.Lock
		between := &redistest.LossyClient{UniversalClient: rdb, SHA: forceScript.SHA()}
		between.Next(func() {
			if next, err = other.Try(t.Context(), "key"); err != nil {
				t.Errorf("Try by the next holder: got %v, want a lock", err)
			}
		})
		if was, err := locker(t, between, prefix, nil).ForceRelease(t.Context(), "key"); was || !errors.Is(err, script.ErrMaybeExecuted) {
			t.Errorf("ForceRelease whose reply was lost: got %v, %v, want false and ErrMaybeExecuted", was, err)
		}
		if err := next.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("Extend by the next holder: got %v, want no error", err)
		}
		if err := first.Release(t.Context()); !errors.Is(err, lock.ErrTakenByOther) {
			t.Errorf("Release by the first holder: got %v, want ErrTakenByOther", err)
		}
	})
}
