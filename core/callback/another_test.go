package callback_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
)

// TestAnEventUnderAnotherID: GitHub signs the body and not the id. A delivery whose body is
// known is not handled, whatever its id is. If the id is another, the hook is told, because
// the same may have happened twice.
func TestAnEventUnderAnotherID(t *testing.T) {
	t.Parallel()
	const body = `{"action":"removed","member":{"login":"ann"}}`
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		g := guard(t, rdb, prefix, idempotency.Options{})
		s, p := &shop{}, callback.GitHub()
		h := endpoint(t, p, g, s, callback.Options{})
		for i, id := range []string{"d1", "d1", "d2", "d3", "d1", ""} {
			deliver(h, body, "X-GitHub-Delivery", id).is(t, p.Done)
			if want := max(0, min(i-1, 2)) + i/5; len(s.told) != want {
				t.Fatalf("delivery %d: the hook got %v, want %d errors", i, s.told, want)
			}
		}
		s.once(t, 1)
		event, is := errors.AsType[*callback.EventError](s.told[0])
		if !s.heard(callback.ErrAnotherDelivery) || !is || event.Key == "" || event.DeliveryID != "d2" || string(event.Payload) != body {
			t.Errorf("the hook got %v, want an EventError of %v", s.told, callback.ErrAnotherDelivery)
		}
		if got := g.Stats().Mismatched; got != 3 {
			t.Errorf("got %d calls counted as mismatched, want 3", got)
		}
	})
}

// TestAnEventUnderAnotherIDThatIsNotDone is handled, unless the first is just being handled.
// Then the hook is told: GitHub does not send it again.
func TestAnEventUnderAnotherIDThatIsNotDone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		p := callback.GitHub()
		p.Deadline = time.Minute
		g := guard(t, rdb, prefix, idempotency.Options{})
		failed := errors.New("failed")
		s := &shop{handle: func(context.Context, *callback.Event) error { return failed }}
		h := endpoint(t, p, g, s, callback.Options{})
		deliver(h, "fails", "X-GitHub-Delivery", "d1").is(t, p.Later)
		s.handle = nil
		deliver(h, "fails", "X-GitHub-Delivery", "d2").is(t, p.Done)
		told := len(s.told)
		deliver(h, "fails", "X-GitHub-Delivery", "d2").is(t, p.Done)
		if len(s.told) != told {
			t.Errorf("of the delivery that was handled: the hook got %v, want nothing", s.told[told:])
		}
		deliver(h, "fails", "X-GitHub-Delivery", "d1").is(t, p.Done)
		if len(s.told) != told+1 || !s.heard(callback.ErrAnotherDelivery) {
			t.Errorf("of the delivery that failed: the hook got %v, want %v", s.told[told:], callback.ErrAnotherDelivery)
		}
		s.told = nil

		s.handle = func(_ context.Context, e *callback.Event) error {
			if e.DeliveryID == "d3" {
				deliver(h, "runs", "X-GitHub-Delivery", "d4").is(t, p.Later)
			}
			return nil
		}
		deliver(h, "runs", "X-GitHub-Delivery", "d3").is(t, p.Done)
		if len(s.told) != 1 || !s.heard(callback.ErrAnotherDelivery) {
			t.Errorf("of the delivery beside one that runs: the hook got %v, want %v alone", s.told, callback.ErrAnotherDelivery)
		}
		s.told = nil
		s.handle = func(context.Context, *callback.Event) error { return callback.Reject(nil) }
		deliver(h, "rejected", "X-GitHub-Delivery", "d5").is(t, p.Refused)
		deliver(h, "rejected", "X-GitHub-Delivery", "d6").is(t, p.Refused)
		if !s.heard(callback.ErrAnotherDelivery) {
			t.Errorf("the hook got %v, want %v of an event that was rejected", s.told, callback.ErrAnotherDelivery)
		}
		s.once(t, 2)
	})
}

// TestAnEventInDoubtUnderAnotherID: what Reconcile.Find has of another guard does not say that
// the event was handled.
func TestAnEventInDoubtUnderAnotherID(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		g := guardOf(t, rdb, prefix, idempotency.Reconcile{
			Find: func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
				return idempotency.Unknown(), idempotency.ErrNoResult
			},
		}, idempotency.Options{})
		s, p := &shop{handle: func(context.Context, *callback.Event) error { return errBook }}, callback.GitHub()
		h := endpoint(t, p, g, s, callback.Options{})
		for _, id := range []string{"d1", "d2"} {
			deliver(h, "body", "X-GitHub-Delivery", id).is(t, p.Later)
		}
		if !s.heard(idempotency.ErrInDoubt) || s.heard(callback.ErrAnotherDelivery) {
			t.Errorf("the hook got %v, want %v, and no %v", s.told, idempotency.ErrInDoubt, callback.ErrAnotherDelivery)
		}
	})
}

// TestRecordsWithoutAnID are of versions that did not keep the id: they match any.
func TestRecordsWithoutAnID(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		g := guard(t, rdb, prefix, idempotency.Options{})
		s, p := &shop{}, callback.GitHub()
		var key string
		s.handle = func(_ context.Context, e *callback.Event) error { key = e.Key; return nil }
		deliver(endpoint(t, p, guard(t, rdb, prefix+"other", idempotency.Options{}), s, callback.Options{}), "body", "X-GitHub-Delivery", "d1").is(t, p.Done)
		run, err := g.Begin(t.Context(), key, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Claim.Conclude(t.Context(), idempotency.DoneWith([]byte("done"))); err != nil {
			t.Fatal(err)
		}
		deliver(endpoint(t, p, g, s, callback.Options{}), "body", "X-GitHub-Delivery", "d2").is(t, p.Done)
		if len(s.told) > 0 {
			t.Errorf("the hook got %v, want nothing", s.told)
		}
		s.once(t, 1)
	})
}

// TestDistinctDeliveries: each id is handled once.
func TestDistinctDeliveries(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		s, p := &shop{}, callback.GitHub()
		h := endpoint(t, p, guard(t, rdb, prefix, idempotency.Options{}), s, callback.Options{DistinctDeliveries: true})
		for _, id := range []string{"d1", "d2", "d1", "d3", "d2"} {
			deliver(h, "body", "X-GitHub-Delivery", id).is(t, p.Done)
		}
		deliver(h, "another body", "X-GitHub-Delivery", "d1").is(t, p.Done)
		s.once(t, 4)
		if len(s.told) > 0 {
			t.Errorf("the hook got %v, want nothing", s.told)
		}
	})
}
