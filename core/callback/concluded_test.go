package callback_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

const alipayKey = "alipay:n1"

// A handler may conclude its claim and return something else. What it concluded with
// decides the next delivery.
func TestHandlerConcludes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		p := callback.Alipay()
		for name, c := range map[string]struct {
			conclude func(ctx context.Context, c *idempotency.Claim) error
			runs     int // the answers to two deliveries
		}{
			"Abandoned": {func(ctx context.Context, c *idempotency.Claim) error {
				return c.Conclude(ctx, idempotency.NothingDone())
			}, 2},
			"Completed": {func(ctx context.Context, c *idempotency.Claim) error {
				return c.Conclude(ctx, idempotency.DoneWith(nil))
			}, 1},
			"Rejected": {func(ctx context.Context, c *idempotency.Claim) error {
				return errors.Join(c.Conclude(ctx, idempotency.NothingDone()), callback.Reject(errBook))
			}, 2},
		} {
			s := &shop{handle: func(ctx context.Context, _ *callback.Event) error {
				claim, _ := idempotency.FromContext(ctx)
				return c.conclude(ctx, claim)
			}}
			h := endpoint(t, p, guard(t, rdb, prefix+name, idempotency.Options{}), s, callback.Options{AckRejected: true})
			deliver(h, alipayForm).is(t, p.Later)
			if !s.heard(idempotency.ErrConcluded) {
				t.Errorf("%s: the hook got %v, want %v", name, s.told, idempotency.ErrConcluded)
			}
			want := p.Later
			if c.runs == 1 {
				want = p.Done
			}
			deliver(h, alipayForm).is(t, want)
			if runs, _ := s.counts(); runs != c.runs {
				t.Errorf("%s: got %d runs, want %d", name, runs, c.runs)
			}
		}
	})
}

// A handler that knows that it has done nothing can leave nothing in doubt.
func TestHandlerAbandons(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		s, p := &shop{}, callback.Alipay()
		g := guardOf(t, rdb, prefix, idempotency.Reject{}, idempotency.Options{})
		h := endpoint(t, p, g, s, callback.Options{})
		s.handle = func(ctx context.Context, _ *callback.Event) error {
			claim, _ := idempotency.FromContext(ctx)
			return errors.Join(errBook, claim.Conclude(ctx, idempotency.NothingDone()))
		}
		deliver(h, alipayForm).is(t, p.Later)
		s.handle = nil
		deliver(h, alipayForm).is(t, p.Done)
		s.once(t, 1)
	})
}

// An event in doubt does not run again until an operator resolves it.
func TestOperatorsResolve(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		p := callback.Alipay()
		for name, c := range map[string]struct {
			outcome        idempotency.Outcome
			want           response
			runs, bookings int
		}{
			"Done":        {idempotency.DoneWith(nil), of(p.Done), 1, 0},
			"DoneWithout": {idempotency.DoneWithout(), of(p.Done), 1, 0},
			"DoneWith":    {idempotency.DoneWith([]byte("a receipt")), of(p.Done), 1, 0},
			"Rejected":    {idempotency.DoneWith([]byte("rejected")), of(p.Refused), 1, 0},
			"NothingDone": {idempotency.NothingDone(), of(p.Done), 2, 1},
		} {
			s := &shop{handle: func(context.Context, *callback.Event) error { return errBook }}
			g := guardOf(t, rdb, prefix+name, idempotency.Reject{}, idempotency.Options{})
			h := endpoint(t, p, g, s, callback.Options{})
			for range 2 {
				deliver(h, alipayForm).is(t, p.Later)
			}
			if runs, _ := s.counts(); runs != 1 || !s.heard(idempotency.ErrInDoubt) {
				t.Errorf("%s: got %d runs, and the hook got %v, want 1 and %v",
					name, runs, s.told, idempotency.ErrInDoubt)
			}
			s.handle = nil
			if err := g.Resolve(t.Context(), alipayKey, c.outcome); err != nil {
				t.Fatal(err)
			}
			if got := deliver(h, alipayForm); got != c.want {
				t.Errorf("%s: got %+v, want %+v", name, got, c.want)
			}
			if runs, bookings := s.counts(); runs != c.runs || bookings != c.bookings {
				t.Errorf("%s: got %d runs and %d bookings, want %d and %d", name, runs, bookings, c.runs, c.bookings)
			}
		}
	})
}

// What Reconcile.Find has of another guard is not taken for the guard's own answer.
func TestReconcileAsksAnotherGuard(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		for i, err := range []error{idempotency.ErrNoResult, idempotency.ErrInFlight, idempotency.ErrMismatch, idempotency.ErrUnreadable} {
			s, p := &shop{handle: func(context.Context, *callback.Event) error { return errBook }}, callback.Alipay()
			g := guardOf(t, rdb, prefix+strconv.Itoa(i), idempotency.Reconcile{
				Find: func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
					return idempotency.Unknown(), err
				},
			}, idempotency.Options{})
			h := endpoint(t, p, g, s, callback.Options{})
			deliver(h, alipayForm).is(t, p.Later)
			deliver(h, alipayForm).is(t, p.Later)
			if got := g.Stats().InDoubt; got != 1 || !s.heard(idempotency.ErrInDoubt) {
				t.Errorf("Find returns %v: got %d in doubt, and the hook got %v, want 1, and %v", err, got, s.told, idempotency.ErrInDoubt)
			}
		}
	})
}

// A result that cannot be read may be that of a rejection.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		s, p := &shop{}, callback.Alipay()
		key := func(id string) []idempotency.EncryptionKey {
			return []idempotency.EncryptionKey{{ID: id, Secret: []byte("an AES-128 key.." + id)[len(id):]}}
		}
		deliver(endpoint(t, p, guard(t, rdb, prefix, idempotency.Options{EncryptionKeys: key("old")}), s, callback.Options{}), alipayForm).is(t, p.Done)
		deliver(endpoint(t, p, guard(t, rdb, prefix, idempotency.Options{EncryptionKeys: key("new")}), s, callback.Options{}), alipayForm).is(t, p.Later)
		s.once(t, 1)
		if !s.heard(idempotency.ErrUnreadable) {
			t.Errorf("the hook got %v, want %v", s.told, idempotency.ErrUnreadable)
		}
	})
}

// Whatever result Reconcile.Find has, the event is done.
func TestReconcileFindsAResult(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		s, p := &shop{handle: func(context.Context, *callback.Event) error { return errBook }}, callback.Alipay()
		g := guardOf(t, rdb, prefix, idempotency.Reconcile{
			Find: func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
				return idempotency.DoneWith([]byte("a receipt")), nil
			},
		}, idempotency.Options{})
		h := endpoint(t, p, g, s, callback.Options{})
		deliver(h, alipayForm).is(t, p.Later)
		for range 2 {
			deliver(h, alipayForm).is(t, p.Done)
		}
		if runs, _ := s.counts(); runs != 1 {
			t.Errorf("got %d runs, want 1", runs)
		}
	})
}

// A Reconcile that panics does not end the process. A handler that ends its goroutine
// does not delay the answer.
func TestDoesNotReturn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		s, p := &shop{handle: func(context.Context, *callback.Event) error {
			runtime.Goexit()
			return nil
		}}, callback.Alipay()
		p.Deadline = time.Minute
		g := guardOf(t, rdb, prefix, idempotency.Reconcile{
			Find: func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) { panic(errBook) },
		}, idempotency.Options{})
		began := time.Now()
		deliver(endpoint(t, p, g, s, callback.Options{}), alipayForm).is(t, p.Later)
		if took := time.Since(began); took >= p.Deadline || len(s.told) != 2 || !s.heard(idempotency.ErrInDoubt) {
			t.Errorf("told later after %v, and the hook got %v, want it told before %v, and the end and %v",
				took, s.told, p.Deadline, idempotency.ErrInDoubt)
		}
		redistest.Await(t, time.Minute, "the end of the run", func() bool { return g.Stats().Abandoned == 1 })
		p = callback.Alipay()
		told := len(s.told)
		deliver(endpoint(t, p, g, s, callback.Options{}), alipayForm).is(t, p.Later)
		if runs, bookings := s.counts(); runs != 1 || bookings != 0 || len(s.told) == told {
			t.Errorf("got %d runs, %d bookings, and the hook got %v, want 1, 0 and one error more",
				runs, bookings, s.told)
		}
	})
}
