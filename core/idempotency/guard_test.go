package idempotency_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func guard(t testing.TB, rdb redis.UniversalClient, prefix string, opts *idempotency.Options) *idempotency.Guard {
	t.Helper()
	return guardOf(t, rdb, prefix, idempotency.Retry{}, opts)
}

func guardOf(t testing.TB, rdb redis.UniversalClient, prefix string, policy idempotency.Policy, opts *idempotency.Options) *idempotency.Guard {
	t.Helper()
	if opts == nil {
		opts = &idempotency.Options{}
	}
	own := *opts
	if own.Budget == 0 {
		own.Budget = 5 * time.Second // a busy machine answers late
	}
	g, err := idempotency.New(storetest.At(t, rdb, prefix), "test", policy, &own)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// begin claims a key that is free.
func begin(t testing.TB, g *idempotency.Guard, key, print string) *idempotency.Claim {
	t.Helper()
	run, err := g.Begin(t.Context(), key, print)
	if err != nil || run.Done || run.Claim == nil {
		t.Fatalf("%q: got %+v, %v, want it claimed", key, run, err)
	}
	return run.Claim
}

// refused checks that Begin fails with the given error.
func refused(t testing.TB, g *idempotency.Guard, key, print string, want error) {
	t.Helper()
	run, err := g.Begin(t.Context(), key, print)
	if run.Claim != nil || run.Done || run.Result != nil || !errors.Is(err, want) {
		t.Fatalf("Begin: got %+v, %v, want %v", run, err, want)
	}
}

// replayed checks that Begin returns the given result.
func replayed(t testing.TB, g *idempotency.Guard, key, print, want string) {
	t.Helper()
	run, err := g.Begin(t.Context(), key, print)
	if run.Claim != nil || err != nil || !run.Done || string(run.Result) != want {
		t.Fatalf("Begin: got %+v, %v, want the result %q", run, err, want)
	}
}

// TestDoRunsOnce has many callers ask for the same key at once, with guards of two
// processes.
func TestDoRunsOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const callers = 40
		guards := []*idempotency.Guard{guard(t, rdb, prefix, nil), guard(t, rdb, prefix, nil)}
		var runs atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				result, err := guards[i%2].Do(t.Context(), "key", func(ctx context.Context) ([]byte, error) {
					if c, ok := idempotency.FromContext(ctx); !ok || c.Attempt() != 1 {
						t.Error("fn was called without a claim of attempt 1 in its context, want one")
					}
					if _, err := guards[(i+1)%2].Begin(ctx, "key", ""); !errors.Is(err, idempotency.ErrInFlight) {
						t.Errorf("another's Begin: got %v, want %v", err, idempotency.ErrInFlight)
					}
					runs.Add(1)
					return []byte("once"), nil
				})
				if err != nil || string(result) != "once" {
					t.Errorf("got %q, %v, want \"once\" and no error", result, err)
				}
			})
		}
		wg.Wait()
		if runs.Load() != 1 {
			t.Errorf("got %d runs of fn, want 1", runs.Load())
		}
		a, b := guards[0].Stats(), guards[1].Stats()
		if a.Begun+b.Begun != 1 || a.Replayed+b.Replayed != callers-1 || a.Running+b.Running != 0 {
			t.Errorf("got stats %+v and %+v, want 1 begun, %d replayed and none running", a, b, callers-1)
		}
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		ctx := t.Context()
		unknown := func(g *idempotency.Guard, key string) {
			t.Helper()
			if err := begin(t, g, key, "").Conclude(ctx, idempotency.Unknown()); err != nil {
				t.Fatal(err)
			}
		}
		retry := guard(t, rdb, prefix, nil)
		unknown(retry, "retry")
		if c := begin(t, retry, "retry", ""); c.Attempt() != 2 {
			t.Errorf("got attempt %d, want 2", c.Attempt())
		}
		reject := guardOf(t, rdb, prefix, idempotency.Reject{}, nil)
		unknown(reject, "reject")
		refused(t, reject, "reject", "", idempotency.ErrInDoubt)
		if err := reject.Resolve(ctx, "reject", idempotency.DoneWith([]byte("found"))); err != nil {
			t.Fatal(err)
		}
		replayed(t, reject, "reject", "", "found")

		var answer idempotency.Outcome
		var fails error
		reconcile := guardOf(t, rdb, prefix, idempotency.Reconcile{
			Find: func(ctx context.Context, c *idempotency.Claim) (idempotency.Outcome, error) {
				if found, ok := idempotency.FromContext(ctx); !ok || found != c || !strings.HasPrefix(c.Key(), "reconcile") {
					t.Error("Reconcile was called without its claim in the context, want it there")
				}
				refused(t, retry, c.Key(), "", idempotency.ErrInFlight)
				return answer, fails
			},
		}, nil)
		unknown(reconcile, "reconcile")
		fails = errors.New("the books are closed")
		refused(t, reconcile, "reconcile", "", fails)
		refused(t, reconcile, "reconcile", "", idempotency.ErrInDoubt)
		fails = nil
		refused(t, reconcile, "reconcile", "", idempotency.ErrInDoubt)
		answer = idempotency.DoneWith([]byte("booked"))
		replayed(t, reconcile, "reconcile", "", "booked")
		replayed(t, reconcile, "reconcile", "", "booked")
		unknown(reconcile, "reconcile 2")
		answer = idempotency.NothingDone()
		if c := begin(t, reconcile, "reconcile 2", ""); c.Attempt() != 2 || c.Conclude(ctx, idempotency.DoneWith(nil)) != nil {
			t.Errorf("got attempt %d, want 2 and no error of Conclude", c.Attempt())
		}
		replayed(t, reconcile, "reconcile 2", "", "")
	})
}

// TestBeginAny matches every record. Only a claim changes the fingerprint.
func TestBeginAny(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		ctx, g := t.Context(), guard(t, rdb, prefix, nil)
		if err := begin(t, g, "key", "a").Conclude(ctx, idempotency.NothingDone()); err != nil {
			t.Fatal(err)
		}
		run, err := g.BeginAny(ctx, "key", "b")
		if err != nil || run.Claim == nil || run.Claim.Attempt() != 2 {
			t.Fatalf("of work that was abandoned: got %+v, %v, want a claim of the second attempt", run, err)
		}
		if _, err := g.BeginAny(ctx, "key", "c"); !errors.Is(err, idempotency.ErrInFlight) {
			t.Errorf("of work that runs: got %v, want %v", err, idempotency.ErrInFlight)
		}
		if err := run.Claim.Conclude(ctx, idempotency.DoneWith([]byte("result"))); err != nil {
			t.Fatal(err)
		}
		run, err = g.BeginAny(ctx, "key", "c")
		if err != nil || !run.Done || string(run.Result) != "result" {
			t.Errorf("of work that was done: got %+v, %v, want its result", run, err)
		}
		refused(t, g, "key", "a", idempotency.ErrMismatch)
		refused(t, g, "key", "c", idempotency.ErrMismatch)
		replayed(t, g, "key", "b", "result")
	})
}
