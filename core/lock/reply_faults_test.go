package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// faulty is a locker of a process that loses replies when the test says so.
type faulty struct {
	*lock.Locker
	client *redistest.Faulty
}

func newFaulty(t *testing.T, srv *redistest.Server, prefix string) *faulty {
	t.Helper()
	client := srv.Faulty(t)
	return &faulty{locker(t, client, prefix, &lock.Options{Lease: 15 * time.Second, NoRenewal: true, Budget: 5 * time.Second}), client}
}

// TestFaultedCalls loses the reply of every call that grants, extends or releases a lock:
// of locks that no other process wants, and of one for which all compete. Each caller
// learns what its call did. A holder is never told that another took its lock, and there
// is never more than one holder.
func TestFaultedCalls(t *testing.T) {
	t.Parallel()
	for name, compete := range map[string]bool{"alone": false, "for one lock": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Standalone(t)
			prefix := srv.Prefix(t)
			var calls, lost, unconfirmed, holders atomic.Int64
			var wg sync.WaitGroup
			for i := range 4 {
				f := newFaulty(t, srv, prefix)
				wg.Go(func() {
					for n := 0; calls.Load() < int64(redistest.Ops(10_000)); n++ {
						key := "key"
						if !compete {
							key = fmt.Sprint(i, "-", n%50)
						}
						f.client.Lose()
						held, err := f.Try(t.Context(), key)
						calls.Add(1)
						if compete && errors.Is(err, lock.ErrHeld) {
							continue
						}
						if err != nil {
							t.Errorf("Try whose reply was lost: got %v, want a lock, or ErrHeld of one for which others compete", err)
							return
						}
						if n := holders.Add(1); compete && n != 1 {
							t.Errorf("got %d holders at once, want 1", n)
						}
						f.client.Lose()
						if err := held.Extend(t.Context(), 15*time.Second); err != nil || held.Err() != nil {
							t.Errorf("Extend whose reply was lost: got %v and Err %v, want none", err, held.Err())
						}
						holders.Add(-1)
						f.client.Lose()
						if err := held.Release(t.Context()); compete && errors.Is(err, script.ErrMaybeExecuted) {
							unconfirmed.Add(1)
						} else if err != nil {
							t.Errorf("Release whose reply was lost: got %v, want no error, or ErrMaybeExecuted if others compete", err)
						}
						calls.Add(2)
					}
					lost.Add(int64(f.client.Lost()))
				})
			}
			wg.Wait()
			if !compete && lost.Load() < calls.Load() {
				t.Errorf("got %d replies lost in %d calls, want one of each", lost.Load(), calls.Load())
			}
			t.Logf("%d replies of %d calls were lost, and %d releases were not confirmed", lost.Load(), calls.Load(), unconfirmed.Load())
		})
	}
}

// stuck is a client whose first call of a script does not reach the server before the
// test says so.
type stuck struct {
	redis.UniversalClient
	sha  string
	seen atomic.Bool
	here chan struct{} // closed when the call is made
	done <-chan struct{}
}

func (c *stuck) Process(ctx context.Context, cmd redis.Cmder) error {
	if strings.Contains(cmd.String(), c.sha) && !c.seen.Swap(true) {
		close(c.here)
		<-c.done
	}
	return c.UniversalClient.Process(ctx, cmd)
}

// TestErrHeldIsNotAGuess has a caller wait behind another whose call gets no answer,
// while the lock is free. ErrHeld would be wrong.
func TestErrHeldIsNotAGuess(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		client := &stuck{UniversalClient: rdb, sha: acquireScript.SHA(), here: make(chan struct{}), done: t.Context().Done()}
		l := locker(t, client, prefix, &lock.Options{Wait: 50 * time.Millisecond})
		if err := l.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var first sync.WaitGroup
		first.Go(func() {
			if held, err := l.Acquire(ctx, "key"); !errors.Is(err, context.Canceled) {
				t.Errorf("the first Acquire: got %v, %v, want context.Canceled", held, err)
			}
		})
		<-client.here
		held, err := l.Acquire(t.Context(), "key")
		if err != nil {
			t.Fatalf("the second Acquire: got %v, want a lock", err)
		}
		cancel()
		first.Wait()
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("the release: got %v, want no error", err)
		}
	})
}
