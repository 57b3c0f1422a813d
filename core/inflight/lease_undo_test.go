package inflight

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// free waits until nothing is in flight.
func free(t *testing.T, c *Limiter, bound time.Duration) {
	t.Helper()
	began := time.Now()
	redistest.Await(t, bound, "the slot to be free", func() bool { return counted(t, c) == 0 })
	t.Logf("free after %v", time.Since(began))
}

// TestAcquireInAStoppedServerIsUndone stops the server while an acquire is on its way,
// until the caller and the first attempts to undo it have given up.
func TestAcquireInAStoppedServerIsUndone(t *testing.T) {
	t.Parallel()
	storetest.EachPausedServer(t, func(t *testing.T, srv *storetest.PausedServer) {
		prefix := srv.Prefix(t)
		c := must(New(storetest.At(t, srv.Client(t), prefix), "c", 1, &Options{Budget: srv.Budget, Fail: store.FailClosed}))(t)
		other := strict(t, srv.Client(t), prefix, 1, 0)
		if err := errors.Join(c.Warm(t.Context()), other.Warm(t.Context())); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		try := func(ctx context.Context) error {
			s, err := c.Try(ctx, "s")
			if s != nil {
				t.Errorf("a try at a stopped server: got %+v, want no slot", s)
			}
			return err
		}
		srv.Fail(t, map[string]func(context.Context) error{"a try": try}, func() {
			redistest.Await(t, 10*time.Second, "four seconds", func() bool { return time.Since(began) > 4*time.Second })
		})
		redistest.Await(t, 30*time.Second, "the acquire to run", func() bool {
			return redistest.CommandStats(t, srv.Admin(t))["zadd"].Calls == 1
		})
		free(t, other, defaultLease/3)
	})
}

// TestAcquireThatOvertakesItsUndoIsUndone lets a grant arrive after attempts to undo it,
// and after an outage longer than its lease. The grant lasts for about a second, not for
// its lease.
func TestAcquireThatOvertakesItsUndoIsUndone(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{"late": 0, "behind an outage": 9 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, client, _ redis.UniversalClient, prefix string) {
				const lease = 8 * time.Second
				slow := &redistest.DelayedClient{UniversalClient: client, SHA: acquireScript.SHA(), Most: 1000}
				rdb := &redistest.AbsentClient{Processor: slow}
				c := must(New(storetest.At(t, rdb, prefix), "c", 1, &Options{
					Budget: 5 * time.Second, Lease: lease, Fail: store.FailClosed, // a busy machine answers late
				}))(t)
				other := strict(t, client, prefix, 1, lease)
				if err := other.Warm(t.Context()); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if s, err := c.Try(t.Context(), "s"); s != nil || !errors.Is(err, script.ErrMaybeExecuted) {
					t.Errorf("a try that arrives late: got %+v, %v, want no slot and ErrMaybeExecuted", s, err)
				}
				rdb.Gone.Store(outage > 0)
				redistest.Await(t, time.Minute, "the first attempts", func() bool { return time.Since(began) > outage+350*time.Millisecond })
				rdb.Gone.Store(false)
				slow.Deliver(t)
				free(t, other, lease*2/3)
				redistest.Await(t, 20*time.Second, "the count of it", func() bool { return c.Stats().Undone == 1 && c.Stats().Undoing == 0 })
			})
		})
	}
}

// TestReleaseIsFinishedInTheBackground stops Redis before a Release: once it answers
// again the slot is free.
func TestReleaseIsFinishedInTheBackground(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	rdb, prefix := srv.Client(t), srv.Prefix(t)
	opts := &Options{Budget: 250 * time.Millisecond, Fail: store.FailClosed}
	c := must(New(storetest.At(t, rdb, prefix), "c", 1, opts))(t)
	if err := c.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	var s *Slot
	redistest.Await(t, 10*time.Second, "a slot", func() bool {
		var err error
		s, err = c.Try(t.Context(), "s")
		return err == nil && s.Allowed
	})
	srv.Pause(t)
	redistest.Await(t, time.Minute, "the breaker to open", func() bool {
		var all sync.WaitGroup // one caller after the other may fail too slowly for it
		for range 10 {
			all.Go(func() { _, _ = c.InFlight(t.Context(), "other") })
		}
		all.Wait()
		return c.Stats().Open
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Release(ended); !errors.Is(err, script.ErrNotExecuted) && !errors.Is(err, script.ErrMaybeExecuted) {
		t.Errorf("a release while Redis is stopped: got %v, want ErrNotExecuted or ErrMaybeExecuted", err)
	}
	if err := s.Release(ended); err != nil {
		t.Errorf("a second release: got %v, want no error", err)
	}
	if got := c.Stats(); got.InFlight != 0 || got.Undoing != 1 {
		t.Errorf("got stats %+v, want 0 in flight and 1 being undone", got)
	}
	srv.Resume(t)
	free(t, strict(t, srv.Client(t), prefix, 1, 0), 10*time.Second)
	redistest.Await(t, time.Minute, "the end of it", func() bool { return c.Stats().Undoing == 0 })
}
