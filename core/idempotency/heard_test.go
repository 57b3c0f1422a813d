package idempotency_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
)

// deaf loses every reply to a script while now is set.
type deaf struct {
	redis.UniversalClient
	sha string
	now atomic.Bool
}

func (d *deaf) Process(ctx context.Context, cmd redis.Cmder) error {
	err := d.UniversalClient.Process(ctx, cmd)
	if err == nil && d.now.Load() && strings.Contains(cmd.String(), d.sha) {
		cmd.SetErr(io.EOF)
		return io.EOF
	}
	return err
}

// heard fails the test unless all waiters have an answer without any time passing.
func heard(t *testing.T, all *sync.WaitGroup) {
	t.Helper()
	began := time.Now()
	all.Wait()
	if took := time.Since(began); took > 0 {
		t.Errorf("all waiters had an answer after %v, want it at once", took)
	}
}

// TestForgetWakesWaiters: one of them does the work again.
func TestForgetWakesWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, inBubble(t), "p", &idempotency.Options{RetryDelay: never, Wait: 2 * never})
		c := begin(t, g, "key", "")
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				run, err := g.Await(t.Context(), "key", "")
				if run.Claim != nil {
					run.Result = []byte("again")
					err = run.Claim.Conclude(t.Context(), idempotency.DoneWith(run.Result))
				}
				if err != nil || string(run.Result) != "again" {
					t.Errorf("got %q, %v, want the second run's result", run.Result, err)
				}
			})
		}
		synctest.Wait()
		if there, err := g.Forget(t.Context(), "key"); !there || err != nil {
			t.Errorf("Forget: got %t, %v, want true and no error", there, err)
		}
		heard(t, &all)
		if s := g.Stats(); s.Begun != 2 || s.Replayed != 4 {
			t.Errorf("got stats %+v, want 2 begun and 4 replayed", s)
		}
		if err := c.Conclude(t.Context(), idempotency.NothingDone()); err == nil {
			t.Error("Abandon of a claim that was forgotten: got no error, want one")
		}
	})
}

// TestAnUnconfirmedEndWakesWaiters: Redis may have noted it all the same.
func TestAnUnconfirmedEndWakesWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &deaf{UniversalClient: inBubble(t), sha: completeSHA}
		g := guard(t, rdb, "p", &idempotency.Options{RetryDelay: never, Wait: 2 * never})
		warm(t, g)
		c := begin(t, g, "key", "")
		var all sync.WaitGroup
		for range 5 {
			awaits(t.Context(), t, &all, g, "key", "result", nil)
		}
		synctest.Wait()
		rdb.now.Store(true)
		if err := c.Conclude(t.Context(), idempotency.DoneWith([]byte("result"))); err == nil {
			t.Error("Complete without a reply: got no error, want one")
		}
		heard(t, &all)
		rdb.now.Store(false)
		left(t, g)
	})
}

// TestAWaiterThatLearnsTheEndWakesTheOthers: otherwise they would ask one after the
// other.
func TestAWaiterThatLearnsTheEndWakesTheOthers(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]error{
		"done 7 1 0 0 somebody -\npresult": nil,
		"gone 7 1 0 0 somebody -\n":        idempotency.ErrNoResult,
		"doubt 7 1 0 0 somebody -\n":       idempotency.ErrInDoubt,
	} {
		synctest.Test(t, func(t *testing.T) {
			const delay = 10 * time.Second
			rdb := inBubble(t)
			g := guardOf(t, rdb, "p", idempotency.Reject{}, &idempotency.Options{
				RetryDelay: delay, Wait: never, Lease: 2 * never, DoubtRetention: 24 * never,
			})
			running := "pending 7 1 99999999999999 7200000 somebody -\n"
			record := nameOf("p", "key")
			rdb.Set(t.Context(), record, running, never)
			var all sync.WaitGroup
			for range 5 {
				result := ""
				if want == nil {
					result = "result"
				}
				awaits(t.Context(), t, &all, g, "key", result, want)
			}
			synctest.Wait()
			rdb.Set(t.Context(), record, line, never)
			began := time.Now()
			all.Wait()
			if took := time.Since(began); took > delay {
				t.Errorf("%q: all waiters had an answer after %v, want it within %v", line, took, delay)
			}
		})
	}
}

type held struct{}

// slow delays a call until its context ends, if that context has the value held.
type slow struct{ redis.UniversalClient }

func (s slow) Process(ctx context.Context, cmd redis.Cmder) error {
	if ctx.Value(held{}) == nil {
		return s.UniversalClient.Process(ctx, cmd)
	}
	<-ctx.Done()
	cmd.SetErr(ctx.Err())
	return ctx.Err()
}

// TestALateWaiterLeavesTheOthersWaiting: since it asked, the key was abandoned and begun
// again, and other callers wait for the new run.
func TestALateWaiterLeavesTheOthersWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, slow{inBubble(t)}, "p", &idempotency.Options{RetryDelay: never, Wait: 2 * never})
		c := begin(t, g, "key", "")
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), held{}, true))
		var late, others sync.WaitGroup
		awaits(ctx, t, &late, g, "key", "", context.Canceled)
		synctest.Wait()
		if err := c.Conclude(t.Context(), idempotency.NothingDone()); err != nil {
			t.Fatal(err)
		}
		c = begin(t, g, "key", "")
		awaits(t.Context(), t, &others, g, "key", "result", nil)
		synctest.Wait()
		cancel()
		late.Wait()
		if err := c.Conclude(t.Context(), idempotency.DoneWith([]byte("result"))); err != nil {
			t.Fatal(err)
		}
		heard(t, &others)
		left(t, g)
	})
}
