package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func locker(t testing.TB, rdb redis.UniversalClient, prefix string, opts *lock.Options) *lock.Locker {
	t.Helper()
	if opts == nil {
		opts = &lock.Options{}
	}
	own := *opts
	if own.Budget == 0 {
		own.Budget = 5 * time.Second // a busy machine answers late
	}
	l, err := lock.New(storetest.At(t, rdb, prefix), "test", &own)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		ctx := t.Context()
		patient := &lock.Options{Wait: 5 * time.Minute} // a busy machine hands over slowly
		lockers := []*lock.Locker{locker(t, rdb, prefix, patient), locker(t, rdb, prefix, patient), locker(t, rdb, prefix, patient)}
		var wg sync.WaitGroup
		holding, last := false, int64(0)
		for i := range 12 {
			wg.Go(func() {
				for range 20 {
					err := lockers[i%3].Do(ctx, "key", func(ctx context.Context) error {
						held, ok := lock.FromContext(ctx)
						if holding || !ok || held.Fence() <= last {
							t.Errorf("in Do: got another holder %v, a lock %v, want false, true and a fence above %d",
								holding, ok, last)
						}
						holding, last = true, held.Fence()
						err := rdb.Ping(ctx).Err() // the work, during which other callers ask
						holding = false
						return errors.Join(err, ctx.Err())
					})
					if err != nil {
						t.Errorf("Do: got %v, want no error", err)
					}
				}
			})
		}
		wg.Wait()
		for _, l := range lockers {
			if got := l.Stats(); got != (lock.Stats{Granted: 80}) {
				t.Errorf("got stats %+v, want 80 granted", got)
			}
		}
	})
}

func TestTry(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		ctx := t.Context()
		l := locker(t, rdb, prefix, nil)
		first, err := l.Try(ctx, "key")
		if err != nil || first.Err() != nil || first.Context().Err() != nil || first.Fence() == 0 {
			t.Fatalf("Try of a free key: got %v, want a lock that is held", err)
		}
		if other, err := l.Try(ctx, "key"); other != nil || !errors.Is(err, lock.ErrHeld) {
			t.Fatalf("Try of a held key: got %v, %v, want no lock and ErrHeld", other, err)
		}
		if err := first.Extend(ctx, time.Minute); err != nil {
			t.Errorf("Extend: got %v, want no error", err)
		}
		state, err := l.Inspect(ctx, "key")
		if err != nil || !state.Held || state.Holds != 1 || state.Fence != first.Fence() || state.Lease <= defaultLease {
			t.Errorf("Inspect: got %+v, %v, want 1 hold with the fence %d for more than the default lease",
				state, err, first.Fence())
		}
		if err := first.Release(ctx); err != nil {
			t.Errorf("Release: got %v, want no error", err)
		}
		if err := first.Release(ctx); err != nil || !errors.Is(first.Err(), lock.ErrReleased) ||
			!errors.Is(context.Cause(first.Context()), lock.ErrReleased) {
			t.Errorf("a second Release: got %v, Err %v, the Context's %v, want no error, and ErrReleased",
				err, first.Err(), first.Context().Err())
		}
		second, err := l.Try(ctx, "key")
		if err != nil || second.Fence() <= first.Fence() {
			t.Fatalf("Try of a released key: got %v, want a lock with a larger fence", err)
		}
		if was, err := l.ForceRelease(ctx, "key"); !was || err != nil {
			t.Errorf("ForceRelease: got %v, %v, want true and no error", was, err)
		}
		if err := second.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release after ForceRelease: got %v, want ErrLost", err)
		}
	})
}

// Warm reports that Redis cannot be reached, through any client.
func TestWarmAsksWhateverTheClient(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { rdb.Close() })
	for _, client := range []script.Client{rdb, struct{ script.Client }{rdb}} {
		l, err := lock.New(client, "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Warm(ctx); err == nil {
			t.Errorf("Warm of a %T without Redis: got no error, want one", client)
		}
	}
}
