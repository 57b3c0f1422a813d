package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// reconciling returns a guard whose Reconcile returns found, and a key that is in doubt.
func reconciling(
	t *testing.T, rdb, admin redis.UniversalClient, prefix string,
	found func(ctx context.Context, c *idempotency.Claim) (idempotency.Outcome, error),
) *idempotency.Guard {
	t.Helper()
	dead(t, admin, prefix, "key")
	g := guardOf(t, rdb, prefix, idempotency.Reconcile{Find: found}, &idempotency.Options{Budget: time.Second, Lease: 3 * time.Second})
	warm(t, g)
	return g
}

// TestReconcileThatAsksAnotherGuard: what another guard answers does not pass for an answer of
// this one. Any other error of Reconcile is found in that of Begin.
func TestReconcileThatAsksAnotherGuard(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	books := errors.New("the books are closed")
	var finds error
	dead(t, rdb, "p", "key")
	g := guardOf(t, rdb, "p", idempotency.Reconcile{Find: func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
		return idempotency.Unknown(), fmt.Errorf("of Find: %w", finds)
	}}, nil)
	for _, finds = range []error{
		idempotency.ErrInFlight, idempotency.ErrMismatch, idempotency.ErrNoResult, idempotency.ErrUnreadable, books,
	} {
		_, err := g.Begin(t.Context(), "key", "")
		if !errors.Is(err, idempotency.ErrInDoubt) || errors.Is(err, finds) != errors.Is(finds, books) || !strings.HasSuffix(err.Error(), "of Find: "+finds.Error()) {
			t.Errorf("Find returns %v: got %v, want %v, with its text", finds, err, idempotency.ErrInDoubt)
		}
	}
	if s := g.Stats(); s.InDoubt != 5 {
		t.Errorf("got stats %+v, want 5 in doubt", s)
	}
}

// TestReconcileThatOutlastsItsClaim: Reconcile says too late that nothing was done. This
// caller may not run.
func TestReconcileThatOutlastsItsClaim(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		g := reconciling(t, rdb, admin, prefix, func(ctx context.Context, _ *idempotency.Claim) (idempotency.Outcome, error) {
			admin.Del(t.Context(), nameOf(prefix, "key"))
			<-ctx.Done()
			return idempotency.NothingDone(), nil
		})
		if run, err := g.Begin(t.Context(), "key", ""); run.Claim != nil || !errors.Is(err, idempotency.ErrLost) {
			t.Errorf("got a claim %t, %v, want none, and %v", run.Claim != nil, err, idempotency.ErrLost)
		}
		if s := g.Stats(); s.Begun != 0 || s.Lost != 1 || s.Running != 0 {
			t.Errorf("got stats %+v, want 1 lost, and none begun or running", s)
		}
	})
}

// TestReconcileThatIsOvertaken: Reconcile returns a result when another caller has taken
// over.
func TestReconcileThatIsOvertaken(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		other := guard(t, rdb, prefix, nil)
		g := reconciling(t, rdb, admin, prefix, func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
			if _, err := other.Forget(t.Context(), "key"); err != nil {
				t.Error(err)
			}
			begin(t, other, "key", "")
			return idempotency.DoneWith([]byte("booked")), nil
		})
		if run, err := g.Begin(t.Context(), "key", ""); run.Claim != nil || run.Result != nil || !errors.Is(err, idempotency.ErrInFlight) {
			t.Errorf("got a claim %t, the result %q, %v, want neither, and %v",
				run.Claim != nil, run.Result, err, idempotency.ErrInFlight)
		}
		if s := g.Stats(); s.Overtaken != 1 || s.InFlight != 1 || s.Replayed != 0 {
			t.Errorf("got stats %+v, want 1 overtaken, 1 in flight and none replayed", s)
		}
	})
}

// TestReconcileWhileRedisIsAway: the result that Reconcile found is returned although
// Redis is down, and is recorded when Redis is back.
func TestReconcileWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix, rdb := srv.Prefix(t), &redistest.CutClient{Client: srv.Client(t)}
	g := reconciling(t, rdb, srv.Admin(t), prefix, func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
		rdb.Cut("refused")
		return idempotency.DoneWith([]byte("booked")), nil
	})
	replayed(t, g, "key", "", "booked")
	if s := g.Stats(); s.Unconfirmed != 1 || s.Replayed != 1 {
		t.Errorf("got stats %+v, want 1 unconfirmed and 1 replayed", s)
	}
	rdb.Mend()
	isDone(t, soon, guard(t, srv.Client(t), prefix, nil), "key", "booked")
}

// TestALateCallIsUndoneAlthoughTheNextWasAnswered: a call that was on its way is granted
// a claim when the run before it has ended. That claim is given back.
func TestALateCallIsUndoneAlthoughTheNextWasAnswered(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		opts := &idempotency.Options{Wait: 100 * time.Millisecond, RetryDelay: 5 * time.Millisecond}
		other := guard(t, rdb, prefix, nil)
		warm(t, other)
		for _, key := range []string{"begin", "await"} {
			slow := &redistest.DelayedClient{UniversalClient: rdb, SHA: beginSHA, Most: 1}
			g := guard(t, slow, prefix, opts)
			ask := g.Begin
			if key == "await" {
				ask = g.Await
			}
			c := begin(t, other, key, "")
			if run, err := ask(t.Context(), key, ""); run.Claim != nil || !errors.Is(err, idempotency.ErrInFlight) {
				t.Fatalf("%s: got a claim %t, %v, want none, and %v",
					key, run.Claim != nil, err, idempotency.ErrInFlight)
			}
			if err := c.Conclude(t.Context(), idempotency.NothingDone()); err != nil {
				t.Error(err)
			}
			slow.Deliver(t)
			redistest.Await(t, 10*time.Second, "it to be given back", func() bool { // it must not lapse, which takes 30 s
				r, err := other.Inspect(t.Context(), key)
				return err == nil && r.State == idempotency.Free && r.Attempt == 1
			})
		}
	})
}
