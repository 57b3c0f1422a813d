package lock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// calm has a budget that is long enough for a busy machine.
func calm(o lock.Options) *lock.Options {
	o.Budget = 5 * time.Second
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
	return &o
}

// inLine waits until the given number of callers of a locker wait.
func inLine(t *testing.T, l *lock.Locker, n int) {
	t.Helper()
	redistest.Await(t, 10*time.Second, "the callers to wait", func() bool { return l.Stats().Waiting == n })
}

func try(t *testing.T, l *lock.Locker) *lock.Lock {
	t.Helper()
	held, err := l.Try(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func release(t *testing.T, held *lock.Lock) {
	t.Helper()
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("the release: got %v, want no error", err)
	}
}

// Callers of one process get the lock in the order in which they came, whether this
// process or another held it before.
func TestWaitersAreServedInTheirOrder(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, calm(lock.Options{}))
		for where, holder := range map[string]*lock.Locker{"here": l, "elsewhere": locker(t, rdb, prefix, calm(lock.Options{}))} {
			held := try(t, holder)
			var mu sync.Mutex
			var order []int
			var wg sync.WaitGroup
			const callers = 12
			for i := range callers {
				wg.Go(func() {
					err := l.Do(t.Context(), "key", func(context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						order = append(order, i)
						return nil
					})
					if err != nil {
						t.Errorf("Do by caller %d: got %v, want no error", i, err)
					}
				})
				inLine(t, l, i+1)
			}
			release(t, held)
			wg.Wait()
			if len(order) != callers || !slices.IsSorted(order) {
				t.Errorf("%s: got callers served in the order %v, want all %d in the order in which they came", where, order, callers)
			}
		}
	})
}

// Only one of the callers of a process that wait for a key asks Redis. It asks at first,
// and once more when it can be woken by the release. If their own process holds the lock,
// no caller asks: the lock is handed from one to the next, and is free after each 5 ms of
// that.
func TestOneCallerOfAProcessAsks(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	l := locker(t, srv.Client(t), prefix, unasking())
	for where, c := range map[string]struct {
		holder         *lock.Locker
		before, during int64
	}{
		"here":      {l, 0, 0},
		"elsewhere": {locker(t, srv.Client(t), prefix, calm(lock.Options{})), 1, 3},
	} {
		held := try(t, c.holder)
		redistest.ResetStats(t, srv.Admin(t))
		asked := func() int64 { return redistest.CommandStats(t, srv.Admin(t))["evalsha"].Calls }
		const callers = 50
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				if err := l.Do(t.Context(), "key", func(context.Context) error { return nil }); err != nil {
					t.Errorf("%s: Do: got %v, want no error", where, err)
				}
			})
		}
		inLine(t, l, callers)
		redistest.Await(t, 30*time.Second, "the first to ask", func() bool { return asked() >= c.before })
		began := time.Now()
		release(t, held)
		wg.Wait()
		most := callers + 2 + int64(time.Since(began)/lock.HandsOn) + c.during
		if n := asked(); n < callers+1 || n > most {
			t.Errorf("%s: got %d calls for %d locks and one release, want from %d to %d", where, n, callers, callers+1, most)
		}
	}
}

// An owner may take its lock again at once, however many other callers wait.
func TestAnOwnerDoesNotWaitBehindOthers(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, unasking())
		mine := l.As("owner")
		outer := try(t, mine)
		var wg sync.WaitGroup
		for i := range 5 {
			other := l
			if i%2 == 1 {
				other = l.As("another")
			}
			wg.Go(func() {
				err := other.Do(t.Context(), "key", func(context.Context) error {
					if outer.Err() == nil {
						t.Error("Do by another owner: got the lock while it is held, want it afterwards")
					}
					return nil
				})
				if err != nil {
					t.Errorf("Do by another owner: got %v, want no error", err)
				}
			})
		}
		inLine(t, l, 5)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		inner, err := mine.Acquire(ctx, "key")
		if err != nil {
			t.Fatal(err)
		}
		release(t, inner)
		release(t, outer)
		wg.Wait()
	})
}

// If the first caller leaves the queue, because its wait is over or its context ended,
// the next caller gets the lock.
func TestAWaiterThatLeavesPassesItsTurnOn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, calm(lock.Options{}))
		held := try(t, locker(t, rdb, prefix, calm(lock.Options{})))
		var cancels []context.CancelFunc
		results := make(chan error, 4)
		for i := range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancels = append(cancels, cancel)
			go func() {
				results <- l.Do(ctx, "key", func(context.Context) error { return errors.New("the last") })
			}()
			inLine(t, l, i+1)
		}
		for _, i := range []int{2, 0, 1} { // one from the middle, and twice the first
			cancels[i]()
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Errorf("the caller %d that left: got %v, want context.Canceled", i, err)
			}
		}
		inLine(t, l, 1)
		release(t, held)
		if err := <-results; err == nil || err.Error() != "the last" {
			t.Errorf("the caller that stayed: got %v, want \"the last\"", err)
		}
		inLine(t, l, 0)
	})
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		still := redistest.Witness(t)
		const limit = 300 * time.Millisecond
		l := locker(t, rdb, prefix, calm(lock.Options{Wait: limit}))
		for where, holder := range map[string]*lock.Locker{"here": l, "elsewhere": locker(t, rdb, prefix, calm(lock.Options{}))} {
			held := try(t, holder)
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					began := time.Now()
					_, err := l.Acquire(t.Context(), "key")
					took := time.Since(began)
					if !errors.Is(err, lock.ErrHeld) || took < limit || took > limit+defaultRetryDelay+max(time.Second, 2*still()) {
						t.Errorf("%s: Acquire of a held key: got %v after %v, want ErrHeld after %v or a little more",
							where, err, took, limit)
					}
				})
			}
			wg.Wait()
			release(t, held)
		}
		if s := l.Stats(); s.Waiting != 0 || s.Holding != 0 || s.Held != 10 {
			t.Errorf("got stats %+v, want 0 waiting, 0 holding and 10 held", s)
		}
	})
}
