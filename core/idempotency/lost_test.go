package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

const sleeperLease = 600 * time.Millisecond

// sleeper begins, and says what it knows of its claim when it is told to; then it
// completes.
func sleeper(words []string) {
	g, err := idempotency.New(redistest.ChildClient(words[0]), "test", &idempotency.Options{Prefix: words[1], Lease: sleeperLease})
	if err != nil {
		panic(err)
	}
	if err := g.Warm(context.Background()); err != nil {
		panic(err)
	}
	c, _, err := g.Await(context.Background(), words[2], "")
	if err != nil {
		panic(err)
	}
	ctx := c.Context()
	fmt.Println("begun")
	_, _ = fmt.Scanln()
	expired := errors.Is(c.Err(), idempotency.ErrLost)
	select {
	case <-ctx.Done():
	case <-time.After(soon):
		fmt.Println("its context goes on")
	}
	err = c.Complete(context.Background(), []byte("of the sleeper"))
	fmt.Printf("Err %t, Context %t, Complete %t: %v\n",
		expired, errors.Is(context.Cause(ctx), idempotency.ErrLost), errors.Is(err, idempotency.ErrLost), err)
}

// TestAHandlerThatSlept is stopped (SIGSTOP) past its lease and runs on: when
// another has taken over its end is refused and changes nothing, and otherwise it
// still counts.
func TestAHandlerThatSlept(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	g := guard(t, srv.Client(t), prefix, nil)
	const refusal = "Err true, Context true, Complete true: idempotency: the claim is lost"
	for key, c := range map[string]struct {
		meanwhile func(t *testing.T, key string) *idempotency.Claim
		says      string
		then      string // the result, but for a claim's
	}{
		"running": {func(t *testing.T, key string) *idempotency.Claim { return begin(t, g, key, "") }, refusal, ""},
		"over": {func(t *testing.T, key string) *idempotency.Claim {
			if err := begin(t, g, key, "").Complete(t.Context(), []byte("of the other")); err != nil {
				t.Error(err)
			}
			return nil
		}, refusal, "of the other"},
		"resolved": {func(t *testing.T, key string) *idempotency.Claim {
			if err := g.Resolve(t.Context(), key, idempotency.DoneWith([]byte("of the operator"))); err != nil {
				t.Error(err)
			}
			return nil
		}, refusal, "of the operator"},
		"nobody": {func(*testing.T, string) *idempotency.Claim { return nil }, "Err true, Context true, Complete false: <nil>", "of the sleeper"},
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			p := redistest.StartChild(t, "sleeper", srv.Addr(), prefix, key)
			if line := p.Line(t); line != "begun" {
				t.Fatal(line)
			}
			if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			redistest.Await(t, soon, "the lease to end", func() bool {
				r, err := g.Get(t.Context(), key)
				return err == nil && r.Lease == 0
			})
			claim := c.meanwhile(t, key)
			p.Tell(t, "")
			if err := p.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if line := p.Line(t); line != c.says {
				t.Errorf("it says %q, not %q", line, c.says)
			}
			if claim == nil {
				replayed(t, g, key, "", c.then)
				return
			}
			r, err := g.Get(t.Context(), key)
			if err != nil || r.State != idempotency.Pending || r.Fence != claim.Fence() || r.Attempt != 2 || claim.Attempt() != 2 {
				t.Errorf("%+v, %v", r, err)
			}
			if err := claim.Complete(t.Context(), []byte("of the next")); err != nil {
				t.Error(err)
			}
			replayed(t, g, key, "", "of the next")
		})
	}
}

// TestToldOfTheLoss has a record go, or be another's, in the middle of a run.
func TestToldOfTheLoss(t *testing.T) {
	t.Parallel()
	const lease, budget = 1500 * time.Millisecond, 300 * time.Millisecond
	for name, c := range map[string]struct {
		end     func(t *testing.T, admin redis.UniversalClient, other *idempotency.Guard, key string)
		outcome error
		flushed uint64
	}{
		"deleted": {func(t *testing.T, admin redis.UniversalClient, _ *idempotency.Guard, key string) {
			admin.Del(t.Context(), key)
		}, nil, 1},
		"forgotten": {func(t *testing.T, _ redis.UniversalClient, other *idempotency.Guard, _ string) {
			if had, err := other.Forget(t.Context(), "key"); err != nil || !had {
				t.Error(had, err)
			}
		}, nil, 1},
		"forgotten and begun": {func(t *testing.T, _ redis.UniversalClient, other *idempotency.Guard, _ string) {
			if _, err := other.Forget(t.Context(), "key"); err != nil {
				t.Error(err)
			}
			begin(t, other, "key", "")
		}, idempotency.ErrLost, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
				toldOfTheLoss(t, rdb, prefix, lease, budget, c.outcome, c.flushed, func(other *idempotency.Guard) {
					c.end(t, admin, other, nameOf(prefix, "key"))
				})
			})
		})
	}
	t.Run("flushed", func(t *testing.T) {
		t.Parallel()
		srv := redistest.NewStandalone(t)
		toldOfTheLoss(t, srv.Client(t), srv.Prefix(t), lease, budget, nil, 1, func(*idempotency.Guard) {
			if err := srv.Admin(t).FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func toldOfTheLoss(
	t *testing.T, rdb redis.UniversalClient, prefix string, lease, budget time.Duration, want error, flushed uint64,
	end func(other *idempotency.Guard),
) {
	t.Helper()
	stood := redistest.Witness(t)
	g := guard(t, rdb, prefix, &idempotency.Options{Lease: lease, Budget: budget})
	other := guard(t, rdb, prefix, nil)
	warm(t, g, other)
	c := begin(t, g, "key", "")
	ctx := c.Context()
	end(other)
	ended := time.Now()
	<-ctx.Done()
	if took, most := time.Since(ended), lease/3+budget+stood(); took > most {
		t.Errorf("told after %v, and not %v", took, most)
	}
	if !errors.Is(context.Cause(ctx), idempotency.ErrLost) || errors.Is(c.Err(), idempotency.ErrExpired) || !errors.Is(c.Err(), idempotency.ErrLost) {
		t.Errorf("%v, %v", context.Cause(ctx), c.Err())
	}
	if err := c.Renew(t.Context()); !errors.Is(err, idempotency.ErrLost) {
		t.Errorf("Renew: %v", err)
	}
	for range 2 {
		if err := c.Complete(t.Context(), []byte("result")); !errors.Is(err, want) {
			t.Errorf("Complete: %v", err)
		}
	}
	if s := g.Stats(); s.Lost != 1 || s.Running != 0 || s.Flushed != flushed || s.Completed != flushed || s.Overtaken != 1-flushed {
		t.Errorf("%+v", s)
	}
	if want == nil {
		replayed(t, other, "key", "", "result")
		return
	}
	refused(t, other, "key", "", idempotency.ErrInFlight)
}
