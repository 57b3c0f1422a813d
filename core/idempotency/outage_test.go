package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// awayBudget is the budget of a guard that begins in time, and whose conclusion is not
// answered in time.
const awayBudget = 2 * time.Second

// TestRedisIsAwayAfter: Redis is down when the work ends. The caller gets the result, and
// the record gets it when Redis is back.
func TestRedisIsAwayAfter(t *testing.T) {
	t.Parallel()
	for how, outage := range map[string][2]func(*redistest.Server, testing.TB){
		"paused":  {(*redistest.Server).Pause, (*redistest.Server).Resume},
		"crashed": {(*redistest.Server).Stop, (*redistest.Server).Start},
	} {
		for policy, its := range policies {
			t.Run(how+"/"+policy, func(t *testing.T) {
				t.Parallel()
				srv := redistest.NewStandalone(t, "--appendonly", "yes", "--appendfsync", "always")
				prefix := srv.Prefix(t)
				stood := redistest.Witness(t)
				g := guardOf(t, srv.Client(t), prefix, its, &idempotency.Options{Budget: awayBudget})
				other := guardOf(t, srv.Client(t), prefix, its, nil)
				warm(t, other)
				failed := begin(t, other, "failed", "") // with the budget of the other guard
				result, err := g.Do(t.Context(), "key", func(context.Context) ([]byte, error) {
					outage[0](srv, t)
					return []byte("result"), nil
				})
				if string(result) != "result" || !isScripts(err) {
					t.Errorf("got %q, %v, want \"result\" and an error of a script", result, err)
				}
				if s := g.Stats(); s.Begun != 1 || s.Unconfirmed != 1 || s.Concluding != 1 || s.Completed != 0 || s.Running != 0 {
					t.Errorf("Redis is away: got stats %+v, "+
						"want 1 begun, unconfirmed and concluding, and none completed or running", s)
				}
				outage[1](srv, t)
				back := time.Now()
				isDone(t, soon, other, "key", "result")
				if took := time.Since(back); took > 2*time.Second+4*stood() {
					t.Errorf("the key was done %v after Redis was back, want within %v", took, 2*time.Second+4*stood())
				}
				left(t, g)
				if s := g.Stats(); s.Completed != 1 || s.Concluded != 1 || s.Concluding != 0 || s.Undone != 0 {
					t.Errorf("Redis is back: got stats %+v, "+
						"want 1 completed and concluded, and none concluding or undone", s)
				}
				if err := failed.Conclude(t.Context(), idempotency.Unknown()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestAFailureThatIsNotNoted: Redis is down when fn fails. Do returns the error of fn
// joined with the error of Redis. When Redis is back, the policy applies.
func TestAFailureThatIsNotNoted(t *testing.T) {
	t.Parallel()
	for policy, its := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			prefix := srv.Prefix(t)
			rdb := srv.Client(t)
			g := guardOf(t, rdb, prefix, its, &idempotency.Options{Budget: awayBudget})
			other := guardOf(t, rdb, prefix, its, nil)
			warm(t, other)
			why := errors.New("of fn")
			_, err := g.Do(t.Context(), "key", func(context.Context) ([]byte, error) {
				srv.Pause(t)
				return nil, why
			})
			if !errors.Is(err, why) || !isScripts(err) {
				t.Errorf("got %v, want %v and an error of a script", err, why)
			}
			srv.Resume(t)
			left(t, g)
			r, err := other.Inspect(t.Context(), "key")
			want := map[string]idempotency.State{"retry": idempotency.Free, "reject": idempotency.Doubtful, "reconcile": idempotency.Doubtful}
			if err != nil || r.State != want[policy] || r.Attempt != 1 {
				t.Errorf("got %+v, %v, want the state %v at attempt 1", r, err, want[policy])
			}
			if s := g.Stats(); s.Abandoned != 1 || s.Concluded != 1 || s.Overtaken != 0 {
				t.Errorf("got stats %+v, want 1 abandoned and concluded, and none overtaken", s)
			}
		})
	}
}

// faulty is a process that loses the replies of its calls when the test says so.
type faulty struct {
	*idempotency.Guard
	client *redistest.Faulty
}

func newFaulty(t *testing.T, srv *redistest.Server, prefix string, policy idempotency.Policy) *faulty {
	t.Helper()
	client := srv.Faulty(t)
	return &faulty{guardOf(t, client, prefix, policy, &idempotency.Options{Lease: 15 * time.Second}), client}
}

// TestFaultedCalls loses the reply of every call, of runs that no other caller wants, and
// of runs that all callers want. Each caller learns what its call did, and nothing stays
// behind.
func TestFaultedCalls(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	var calls, unconfirmed, runners atomic.Int64
	var wg sync.WaitGroup
	var all []*faulty
	for i, policy := range []string{"retry", "reject", "reconcile", "retry"} {
		f := newFaulty(t, srv, prefix, policies[policy])
		all = append(all, f)
		wg.Go(func() {
			for n := 0; calls.Load() < int64(redistest.Ops(12_000)) && !t.Failed(); n++ {
				if n%3 == 0 {
					calls.Add(f.shares(t, &runners, &unconfirmed))
				} else {
					calls.Add(f.runs(t, fmt.Sprint(i, "-", n), n%3 == 1))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("of %d calls, %d abandonments were not confirmed", calls.Load(), unconfirmed.Load())
	for i, f := range all {
		f.client.Heal()
		if s := f.Stats(); s.Overtaken+s.Lost+s.Flushed+s.InDoubt+s.Mismatched+s.Failed+s.NoResult != 0 || s.Running != 0 {
			t.Errorf("guard %d: got stats %+v, want nothing lost, failed, in doubt or running", i, s)
		}
	}
	redistest.Await(t, soon, "no claim", func() bool {
		names := admin.Keys(t.Context(), prefix+"*").Val()
		for _, value := range admin.MGet(t.Context(), names...).Val() {
			if text := value.(string); text[0] != 'd' && text[0] != 'f' { // done, abandoned
				return false
			}
		}
		return len(names) > len(all)
	})
}

// runs completes and replays keys that no other caller wants, or abandons them and begins
// again.
func (f *faulty) runs(t *testing.T, key string, completes bool) (calls int64) {
	end := func(c *idempotency.Claim) error { return c.Conclude(t.Context(), idempotency.NothingDone()) }
	if completes {
		end = func(c *idempotency.Claim) error { return c.Conclude(t.Context(), idempotency.DoneWith([]byte(key))) }
	}
	f.client.Lose()
	run, err := f.Begin(t.Context(), key, "")
	c := run.Claim
	if err != nil || c == nil || c.Attempt() != 1 {
		t.Errorf("Begin: got %+v, %v, want a claim of attempt 1", run, err)
		return 1
	}
	f.client.Lose()
	if err := c.Renew(t.Context()); err != nil {
		t.Errorf("Renew: got %v, want no error", err)
	}
	f.client.Lose()
	if err := end(c); err != nil {
		t.Errorf("the end: got %v, want no error", err)
	}
	f.client.Lose()
	run, err = f.Begin(t.Context(), key, "")
	again := run.Claim
	switch {
	case completes && (!run.Done || string(run.Result) != key || err != nil):
		t.Errorf("the second Begin: got %+v, %v, want the result", run, err)
	case !completes && (again == nil || err != nil || again.Attempt() != 2):
		t.Errorf("the second Begin: got %+v, %v, want a second attempt", run, err)
	case again != nil:
		if err := again.Conclude(t.Context(), idempotency.DoneWith(nil)); err != nil {
			t.Errorf("Conclude: got %v, want no error", err)
		}
	}
	return 4
}

// shares tries to run a key that all callers want.
func (f *faulty) shares(t *testing.T, runners, unconfirmed *atomic.Int64) (calls int64) {
	f.client.Lose()
	run, err := f.Begin(t.Context(), "shared", "")
	c := run.Claim
	if errors.Is(err, idempotency.ErrInFlight) {
		return 1
	}
	if err != nil || c == nil {
		t.Errorf("Begin: got %+v, %v, want a claim or %v", run, err, idempotency.ErrInFlight)
		return 1
	}
	if n := runners.Add(1); n != 1 {
		t.Errorf("got %d callers at work at once, want 1", n)
	}
	f.client.Lose()
	if err := c.Renew(t.Context()); err != nil {
		t.Errorf("Renew: got %v, want no error", err)
	}
	runners.Add(-1)
	f.client.Lose()
	if err := c.Conclude(t.Context(), idempotency.NothingDone()); errors.Is(err, script.ErrMaybeExecuted) {
		unconfirmed.Add(1)
	} else if err != nil {
		t.Errorf("Conclude: got %v, want no error or %v", err, script.ErrMaybeExecuted)
	}
	return 3
}
