package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

const sleeperLease = 9 * time.Second // a call may take a third of it

// sleeper is a child process that begins a run. It prints what it knows of its claim when
// it is told to, and then completes the run.
func sleeper(words []string) {
	g, err := idempotency.New(storetest.Child(words[0], words[1]), "test", idempotency.Retry{}, &idempotency.Options{
		Lease: sleeperLease, Budget: sleeperLease / 3,
	})
	if err != nil {
		panic(err)
	}
	if err := g.Warm(context.Background()); err != nil {
		panic(err)
	}
	run, err := g.Await(context.Background(), words[2], "")
	if err != nil {
		panic(err)
	}
	c := run.Claim
	ctx := c.Context()
	fmt.Println("begun")
	_, _ = fmt.Scanln()
	expired := errors.Is(c.Err(), idempotency.ErrLost)
	select {
	case <-ctx.Done():
	case <-time.After(soon):
		fmt.Println("its context goes on")
	}
	err = c.Conclude(context.Background(), idempotency.DoneWith([]byte("of the sleeper")))
	fmt.Printf("Err %t, Context %t, Complete %t: %v\n",
		expired, errors.Is(context.Cause(ctx), idempotency.ErrLost), errors.Is(err, idempotency.ErrLost), err)
}

// TestAHandlerThatSlept stops a process with SIGSTOP until its lease is over, and lets it
// run again. If another caller has taken over, its conclusion is refused and changes
// nothing. Otherwise the conclusion still counts.
func TestAHandlerThatSlept(t *testing.T) { //nolint:tparallel // they have slept at the same time
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	g := guard(t, srv.Client(t), prefix, nil)
	const refusal = "Err true, Context true, Complete true: idempotency: the claim is lost"
	ends := map[string]struct {
		meanwhile func(t *testing.T, key string) *idempotency.Claim
		says      string
		then      string // the result, except the one of a claim
	}{
		"running": {func(t *testing.T, key string) *idempotency.Claim { return begin(t, g, key, "") }, refusal, ""},
		"over": {func(t *testing.T, key string) *idempotency.Claim {
			if err := begin(t, g, key, "").Conclude(t.Context(), idempotency.DoneWith([]byte("of the other"))); err != nil {
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
	}
	sleepers := map[string]*redistest.Child{} // they all sleep at the same time
	for key := range ends {
		p := redistest.StartChild(t, "sleeper", srv.Addr(), prefix, key)
		if line := p.Line(t); line != "begun" {
			t.Fatalf("the child: got %q, want begun", line)
		}
		p.Stop(t)
		sleepers[key] = p
	}
	for key, c := range ends { //nolint:paralleltest // the same
		t.Run(key, func(t *testing.T) {
			p := sleepers[key]
			redistest.Await(t, soon, "the lease to end", func() bool {
				r, err := g.Inspect(t.Context(), key)
				return err == nil && r.Lease == 0
			})
			claim := c.meanwhile(t, key)
			p.Tell(t, "")
			p.Resume()
			if line := p.Line(t); line != c.says {
				t.Errorf("the child: got %q, want %q", line, c.says)
			}
			if claim == nil {
				replayed(t, g, key, "", c.then)
				return
			}
			r, err := g.Inspect(t.Context(), key)
			if err != nil || r.State != idempotency.Pending || r.Fence != claim.Fence() || r.Attempt != 2 || claim.Attempt() != 2 {
				t.Errorf("got %+v, %v, want it pending with the fence %d, at attempt 2", r, err, claim.Fence())
			}
			if err := claim.Conclude(t.Context(), idempotency.DoneWith([]byte("of the next"))); err != nil {
				t.Error(err)
			}
			replayed(t, g, key, "", "of the next")
		})
	}
}

// loss is a way in which a record goes away or becomes another caller's.
type loss struct {
	end     func(t *testing.T, admin redis.UniversalClient, other *idempotency.Guard, prefix, key string)
	outcome error
	flushed uint64
}

// TestHoldersLearnOfALoss deletes records, or gives them to another caller, in the middle
// of a run.
func TestHoldersLearnOfALoss(t *testing.T) {
	t.Parallel()
	forget := func(t *testing.T, _ redis.UniversalClient, other *idempotency.Guard, _, key string) {
		t.Helper()
		if had, err := other.Forget(t.Context(), key); err != nil || !had {
			t.Errorf("Forget: got %t, %v, want true and no error", had, err)
		}
	}
	losses := map[string]loss{
		"deleted": {func(t *testing.T, admin redis.UniversalClient, _ *idempotency.Guard, prefix, key string) {
			admin.Del(t.Context(), nameOf(prefix, key))
		}, nil, 1},
		"forgotten": {forget, nil, 1},
		"begun": {func(t *testing.T, admin redis.UniversalClient, other *idempotency.Guard, prefix, key string) {
			forget(t, admin, other, prefix, key)
			begin(t, other, key, "")
		}, idempotency.ErrLost, 0},
	}
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		var isTold []func(t *testing.T)
		for key, c := range losses {
			isTold = append(isTold, toldOfTheLoss(t, rdb, admin, prefix, key, c))
		}
		for _, look := range isTold {
			look(t)
		}
	})
	t.Run("flushed", func(t *testing.T) {
		t.Parallel()
		srv := redistest.NewStandalone(t)
		flush := func(t *testing.T, admin redis.UniversalClient, _ *idempotency.Guard, _, _ string) {
			if err := admin.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		toldOfTheLoss(t, srv.Client(t), srv.Admin(t), srv.Prefix(t), "flushed", loss{flush, nil, 1})(t)
	})
}

// toldOfTheLoss begins a run that is then lost. It returns a function that checks when
// and how its holder is told.
func toldOfTheLoss(t *testing.T, rdb, admin redis.UniversalClient, prefix, key string, how loss) func(t *testing.T) {
	t.Helper()
	const lease, budget = 6 * time.Second, 2 * time.Second
	stood := redistest.Witness(t)
	g := guard(t, rdb, prefix, &idempotency.Options{Lease: lease, Budget: budget})
	other := guard(t, rdb, prefix, nil)
	warm(t, other)
	c := begin(t, g, key, "")
	ctx, told := c.Context(), make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { told <- time.Now() })
	how.end(t, admin, other, prefix, key)
	ended := time.Now()
	return func(t *testing.T) {
		t.Helper()
		select {
		case at := <-told:
			if took, most := at.Sub(ended), lease/3+budget+redistest.Grace+4*stood(); took > most {
				t.Errorf("%s: the holder was told after %v, want within %v", key, took, most)
			}
		case <-time.After(soon):
			t.Fatalf("%s: the holder was not told within %v, want it told", key, soon)
		}
		if !errors.Is(context.Cause(ctx), idempotency.ErrLost) || errors.Is(c.Err(), idempotency.ErrExpired) || !errors.Is(c.Err(), idempotency.ErrLost) {
			t.Errorf("%s: got the cause %v and the error %v, want %v of both, and it not expired",
				key, context.Cause(ctx), c.Err(), idempotency.ErrLost)
		}
		if err := c.Renew(t.Context()); !errors.Is(err, idempotency.ErrLost) {
			t.Errorf("%s: Renew: got %v, want %v", key, err, idempotency.ErrLost)
		}
		for range 2 {
			if err := c.Conclude(t.Context(), idempotency.DoneWith([]byte("result"))); !errors.Is(err, how.outcome) {
				t.Errorf("%s: Conclude: got %v, want %v", key, err, how.outcome)
			}
		}
		s, flushed := g.Stats(), how.flushed
		if s.Lost != 1 || s.Running != 0 || s.Flushed != flushed || s.Completed != flushed || s.Overtaken != 1-flushed {
			t.Errorf("%s: got stats %+v, want 1 lost, %d flushed and completed, %d overtaken and none running",
				key, s, flushed, 1-flushed)
		}
		if how.outcome == nil {
			replayed(t, other, key, "", "result")
			return
		}
		refused(t, other, key, "", idempotency.ErrInFlight)
	}
}
