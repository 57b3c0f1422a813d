package idempotency_test

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

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// TestCallersCanceledWhileItRuns: the context of the run ends, and the run can still be
// concluded. Its detached context does not end.
func TestCallersCanceledWhileItRuns(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		why := errors.New("the client went away")
		for policy, its := range policies {
			g := guardOf(t, rdb, prefix, its, nil)
			for _, detached := range []bool{false, true} {
				key := fmt.Sprint(policy, detached)
				if policy == "reconcile" {
					dead(t, admin, prefix, key)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				run, err := g.Begin(ctx, key, "")
				if err != nil {
					t.Fatal(err)
				}
				c := run.Claim
				inner, other := c.Context(), c.Detached()
				if detached {
					inner, other = other, inner
				}
				cancel(why)
				if detached {
					if inner.Err() != nil {
						t.Errorf("%s: detached, its context ended with %v, want it to go on",
							key, context.Cause(inner))
					}
				} else if <-inner.Done(); !errors.Is(context.Cause(inner), why) {
					t.Errorf("%s: its context ended with %v, want %v", key, context.Cause(inner), why)
				}
				if found, ok := idempotency.FromContext(inner); !ok || found != c {
					t.Errorf("%s: got another claim or none in its context, want its own", key)
				}
				if err := c.Renew(ctx); !errors.Is(err, context.Canceled) || c.Err() != nil {
					t.Errorf("%s: Renew: got %v, and the claim's error %v, want %v and none",
						key, err, c.Err(), context.Canceled)
				}
				if err := c.Conclude(ctx, idempotency.DoneWith([]byte(key))); err != nil {
					t.Errorf("%s: Conclude: got %v, want no error", key, err)
				}
				replayed(t, g, key, "", key)
				if inner.Err() == nil || other.Err() == nil {
					t.Errorf("%s: its contexts: got %v and %v after Complete, want both ended", key, inner.Err(), other.Err())
				}
				canceled := g.Stats().Canceled
				if _, err := g.Do(ctx, key, unrun(t)); !errors.Is(err, context.Canceled) || g.Stats().Canceled != canceled+1 {
					t.Errorf("%s: Do by a caller that went: got %v and stats %+v, want %v and one more canceled",
						key, err, g.Stats(), context.Canceled)
				}
			}
		}
	})
}

// TestDoThatDoesNotReturn panics, or ends its goroutine. The policy says what happens
// next.
func TestDoThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for policy, its := range policies {
			g := guardOf(t, rdb, prefix, its, nil)
			for name, leave := range map[string]func() error{
				"panic": func() error { panic("of fn") }, "Goexit": func() error { runtime.Goexit(); return nil },
				"error": func() error { return errors.New("of fn") },
			} {
				key := policy + "-" + name
				var inner context.Context
				done := make(chan any)
				go func() {
					defer func() { done <- recover() }()
					_, _ = g.Do(t.Context(), key, func(ctx context.Context) ([]byte, error) { inner = ctx; return nil, leave() })
				}()
				if got := <-done; name == "panic" && got != "of fn" {
					t.Errorf("got the panic %v, want \"of fn\"", got)
				}
				if !errors.Is(context.Cause(inner), idempotency.ErrConcluded) {
					t.Errorf("%s: its context ended with %v, want %v",
						key, context.Cause(inner), idempotency.ErrConcluded)
				}
				if policy == "reject" {
					refused(t, g, key, "", idempotency.ErrInDoubt)
				} else if c := begin(t, g, key, ""); c.Attempt() != 2 || c.Conclude(t.Context(), idempotency.NothingDone()) != nil {
					t.Errorf("%s: got attempt %d, want 2 and no error of Conclude", key, c.Attempt())
				}
			}
			result, err := g.Do(t.Context(), policy, func(ctx context.Context) ([]byte, error) {
				c, _ := idempotency.FromContext(ctx)
				return []byte("for now"), c.Conclude(ctx, idempotency.NothingDone())
			})
			if string(result) != "for now" || err != nil {
				t.Errorf("got %q, %v, want \"for now\" and no error", result, err)
			}
			if c := begin(t, g, policy, ""); c.Attempt() != 2 || c.Conclude(t.Context(), idempotency.DoneWith(nil)) != nil {
				t.Errorf("what did nothing for now: got attempt %d, want 2 and no error of Conclude", c.Attempt())
			}
			if s := g.Stats(); s.Running != 0 {
				t.Errorf("got stats %+v, want none running", s)
			}
		}
	})
}

// TestReconcileThatDoesNotReturn panics. The work stays in doubt, and a waiting caller
// asks.
func TestReconcileThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		g := guardOf(t, rdb, prefix, idempotency.Reconcile{
			Find: func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) { panic("of Reconcile") },
		}, nil)
		dead(t, admin, prefix, "key")
		func() {
			defer func() {
				if got := recover(); got != "of Reconcile" {
					t.Errorf("got the panic %v, want \"of Reconcile\"", got)
				}
			}()
			_, _ = g.Await(t.Context(), "key", "")
		}()
		if r, err := g.Inspect(t.Context(), "key"); err != nil || r.State != idempotency.Doubtful {
			t.Errorf("got %+v, %v, want the state %v", r, err, idempotency.Doubtful)
		}
		if s := g.Stats(); s.Running != 0 {
			t.Errorf("got stats %+v, want none running", s)
		}
	})
}

// TestNothingLeaks runs keys with and without rivals, drops some while the server is
// down, and compares goroutines and connections before and after. It runs alone.
func TestNothingLeaks(t *testing.T) { //nolint:paralleltest // it counts goroutines
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	connections := func() int { return strings.Count(admin.ClientList(t.Context()).Val(), "user="+redistest.User+" ") }
	before, was := redistest.Settled(runtime.NumGoroutine), connections()

	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: redistest.User, Password: redistest.Password, ContextTimeoutEnabled: true})
	opts := &idempotency.Options{RetryDelay: 20 * time.Millisecond, Wait: time.Minute}
	g, second := guard(t, rdb, prefix, opts), guard(t, rdb, prefix, opts)
	drops := guard(t, rdb, prefix, &idempotency.Options{Lease: 2 * time.Second}) // undone within the lease
	short := guard(t, rdb, prefix, &idempotency.Options{Lease: 1500 * time.Millisecond, Budget: 500 * time.Millisecond})
	warm(t, g)
	ctx := t.Context()
	var wg sync.WaitGroup
	n := redistest.Ops(10_000)
	for i := range 10 {
		wg.Go(func() {
			for j := range n / 10 {
				key := fmt.Sprint(i, "-", j)
				switch {
				case j%10 == 0: // rivals: guards of two processes
					by := []*idempotency.Guard{g, second}[i%2]
					key = fmt.Sprint("all-", j)
					result, err := by.Do(ctx, key, func(ctx context.Context) ([]byte, error) { return []byte(key), ctx.Err() })
					if err != nil || string(result) != key {
						t.Errorf("got %q, %v, want %q", result, err, key)
					}
				case j%50 == 1: // dropped by its caller
					gone, cancel := context.WithTimeout(ctx, time.Duration(j%7)*100*time.Microsecond)
					if run, err := drops.Await(gone, key, ""); err == nil {
						_ = run.Claim.Context()
						_ = run.Claim.Conclude(gone, idempotency.NothingDone())
					}
					cancel()
				default:
					run, err := g.Begin(ctx, key, "")
					if err != nil {
						t.Error(err)
						return
					}
					c := run.Claim
					_ = c.Context()
					if err := c.Conclude(ctx, idempotency.DoneWith(nil)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()

	var dropped []*idempotency.Claim
	for i := range 20 {
		if run, err := short.Begin(ctx, fmt.Sprint("away", i), ""); err == nil {
			dropped = append(dropped, run.Claim)
		}
	}
	srv.Pause(t)
	for i, c := range dropped {
		wg.Go(func() {
			if i%2 == 0 {
				_ = c.Conclude(ctx, idempotency.DoneWith(nil))
			} else {
				<-c.Context().Done()
			}
		})
	}
	wg.Wait()
	srv.Resume(t)
	if len(dropped) == 0 {
		t.Error("got no claims dropped while the server was down, want some")
	}
	left(t, g, second, drops, short)
	if pool := redistest.Connections(rdb); connections() > was+pool {
		t.Errorf("got %d connections, want %d at most", connections(), was+pool)
	}
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
	redistest.Await(t, soon, "no connection", func() bool { return connections() == was })
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
	t.Errorf("got %d goroutines, want the %d of before at most:\n%s",
		after, before, stacks[:runtime.Stack(stacks, true)])
}
