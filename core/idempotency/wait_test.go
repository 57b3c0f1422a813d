package idempotency_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// asked returns how many calls a server has received since it was reset.
func asked(t *testing.T, admin redis.UniversalClient) int64 {
	t.Helper()
	return redistest.CommandStats(t, admin)["evalsha"].Calls
}

// awaits calls Await for a key in the background.
func awaits(ctx context.Context, t *testing.T, wg *sync.WaitGroup, g *idempotency.Guard, key, result string, want error) {
	wg.Go(func() {
		run, err := g.Await(ctx, key, "")
		if run.Claim != nil || string(run.Result) != result || run.Done != (want == nil) || !errors.Is(err, want) {
			t.Errorf("Await: got %+v, %v, want %q, %v", run, err, result, want)
		}
	})
}

const (
	never = time.Hour             // a RetryDelay that no test waits for
	brief = 30 * time.Millisecond // a short RetryDelay
	long  = time.Minute           // a Wait
)

// TestARunThatEndsHereWakesItsWaiters: 100 callers would ask again only after an hour.
// Each of them asks once before the run ends, and once after.
func TestARunThatEndsHereWakesItsWaiters(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	g := guard(t, srv.Client(t), prefix, &idempotency.Options{RetryDelay: never, Wait: long})
	warm(t, g)
	for name, c := range map[string]struct {
		end    func(c *idempotency.Claim) error
		result string
		want   error
	}{
		"done": {func(c *idempotency.Claim) error {
			return c.Conclude(t.Context(), idempotency.DoneWith([]byte("result")))
		}, "result", nil},
		"gone":     {func(c *idempotency.Claim) error { return c.Conclude(t.Context(), idempotency.DoneWithout()) }, "", idempotency.ErrNoResult},
		"resolved": {func(*idempotency.Claim) error { return resolved(t, g, srv.Admin(t), nameOf(prefix, "resolved")) }, "by hand", nil},
	} {
		const waiters = 100
		claim := begin(t, g, name, "")
		redistest.ResetStats(t, admin)
		var wg sync.WaitGroup
		for range waiters {
			awaits(t.Context(), t, &wg, g, name, c.result, c.want)
		}
		redistest.Await(t, soon, "all to ask", func() bool { return asked(t, admin) >= waiters })
		if err := c.end(claim); err != nil {
			t.Error(err)
		}
		began := time.Now()
		wg.Wait()
		if took := time.Since(began); took > soon {
			t.Errorf("%s: all waiters had an answer after %v, want %v at most", name, took, soon)
		}
		if n := asked(t, admin); n > 3*waiters {
			t.Errorf("%s: got %d questions, want %d at most", name, n, 3*waiters)
		}
	}
}

// resolved lets an operator of this process resolve a run, as if its process were dead.
func resolved(t *testing.T, g *idempotency.Guard, admin redis.UniversalClient, record string) error {
	t.Helper()
	if err := admin.Set(t.Context(), record, "doubt 7 1 0 0 somebody -\n", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	return g.Resolve(t.Context(), "resolved", idempotency.DoneWith([]byte("by hand")))
}

// TestNothingDoneWakesTheNext: each of the waiters runs, one after the other.
func TestNothingDoneWakesTheNext(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	g := guard(t, srv.Client(t), prefix, &idempotency.Options{RetryDelay: never, Wait: long})
	var wg sync.WaitGroup
	attempts := make(chan int64, 20)
	for range cap(attempts) {
		wg.Go(func() {
			run, err := g.Await(t.Context(), "key", "")
			if err != nil {
				t.Error(err)
				return
			}
			c := run.Claim
			attempts <- c.Attempt()
			if err := c.Conclude(t.Context(), idempotency.NothingDone()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for want := range int64(cap(attempts)) {
		if got := <-attempts; got != want+1 {
			t.Errorf("got attempt %d, want %d", got, want+1)
		}
	}
}

// TestWaitingCostsLittle has 100 callers of one process wait for a run of another
// process. One of them asks for all.
func TestWaitingCostsLittle(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	g := guard(t, srv.Client(t), prefix, &idempotency.Options{RetryDelay: brief, Wait: long})
	other := guard(t, srv.Client(t), prefix, nil)
	warm(t, g, other)
	c := begin(t, other, "key", "")
	const waiters, rounds = 100, 20
	redistest.ResetStats(t, admin)
	var wg sync.WaitGroup
	began := time.Now()
	for range waiters {
		awaits(t.Context(), t, &wg, g, "key", "result", nil)
	}
	redistest.Await(t, soon, "some questions of the one", func() bool { return asked(t, admin) >= waiters+rounds })
	took := time.Since(began)
	if n := asked(t, admin); n > waiters+rounds+int64(took/(brief/2)) {
		t.Errorf("got %d questions in %v, want %d at most", n, took, waiters+rounds+int64(took/(brief/2)))
	}
	if err := c.Conclude(t.Context(), idempotency.DoneWith([]byte("result"))); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if s := g.Stats(); s.Replayed != waiters || s.InFlight != 0 {
		t.Errorf("got stats %+v, want %d replayed and none in flight", s, waiters)
	}
}

// TestAnotherLeads: when the caller that asks for the others leaves, or its wait is over,
// another one asks.
func TestAnotherLeads(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]error{"canceled": context.Canceled, "timed out": idempotency.ErrInFlight} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const wait = 3 * time.Second
				rdb := inBubble(t)
				g := guard(t, rdb, "p", &idempotency.Options{RetryDelay: brief, Wait: wait})
				other := guard(t, rdb, "p", nil)
				c := begin(t, other, "key", "")
				ctx, cancel := context.WithCancel(t.Context())
				var first, others sync.WaitGroup
				awaits(ctx, t, &first, g, "key", "", want)
				time.Sleep(wait / 2)
				for range 5 {
					awaits(t.Context(), t, &others, g, "key", "result", nil)
				}
				if how == "canceled" {
					time.Sleep(wait / 4)
					cancel()
				}
				first.Wait()
				cancel()
				if err := c.Conclude(t.Context(), idempotency.DoneWith([]byte("result"))); err != nil {
					t.Error(err)
				}
				ended := time.Now()
				others.Wait()
				if took := time.Since(ended); took > brief {
					t.Errorf("all waiters had an answer after %v, want %v at most", took, brief)
				}
			})
		})
	}
}

// TestAwaitReturnsErrInFlightAfterWait, and not before.
func TestAwaitReturnsErrInFlightAfterWait(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		stood := redistest.Witness(t)
		for _, delay := range []time.Duration{5 * time.Millisecond, never} {
			const wait = 300 * time.Millisecond
			g := guard(t, rdb, prefix, &idempotency.Options{RetryDelay: delay, Wait: wait})
			c := begin(t, g, "key", "")
			began := time.Now()
			var wg sync.WaitGroup
			for range 5 {
				awaits(t.Context(), t, &wg, g, "key", "", idempotency.ErrInFlight)
			}
			wg.Wait()
			if took := time.Since(began); took < wait || took > wait+5*time.Second+stood() {
				t.Errorf("got ErrInFlight after %v, want it after %v to %v", took, wait, wait+5*time.Second+stood())
			}
			if s := g.Stats(); s.InFlight != 5 || s.Begun != 1 {
				t.Errorf("got stats %+v, want 5 in flight and 1 begun", s)
			}
			if err := c.Conclude(t.Context(), idempotency.NothingDone()); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestAWaiterTakesOver a run that is not renewed.
func TestAWaiterTakesOver(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	gone := &redistest.CutClient{Client: srv.Client(t)}
	first := guard(t, gone, prefix, &idempotency.Options{Lease: 3 * time.Second})
	warm(t, first)
	begin(t, first, "key", "")
	gone.Cut("refused")
	g := guard(t, srv.Client(t), prefix, &idempotency.Options{RetryDelay: brief, Wait: long})
	run, err := g.Await(t.Context(), "key", "")
	c := run.Claim
	if err != nil || c.Attempt() != 2 || c.Conclude(t.Context(), idempotency.DoneWith(nil)) != nil {
		t.Fatalf("got %+v, %v, want attempt 2 and no error of Conclude", run, err)
	}
}
