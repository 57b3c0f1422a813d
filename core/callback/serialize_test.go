package callback_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// Two events of one order do not run together. The second waits: GitHub, for one, does not
// send it again.
func TestSerialize(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		locker, err := lock.New(storetest.At(t, rdb, prefix), "orders", &lock.Options{Budget: time.Minute, Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		running, finish := make(chan struct{}, 4), make(chan struct{})
		s, p := &shop{handle: func(ctx context.Context, _ *callback.Event) error {
			if _, ok := lock.FromContext(ctx); !ok {
				t.Error("the handler found no lock in its context, want one")
			}
			if state, err := locker.Inspect(ctx, "alipay:o1"); err != nil || !state.Held {
				t.Errorf("got the lock of the order %+v, %v, want it held", state, err)
			}
			running <- struct{}{}
			<-finish
			return nil
		}}, callback.Alipay()
		p.Deadline = time.Minute
		g := guardOf(t, rdb, prefix, idempotency.Reject{}, idempotency.Options{})
		h := endpoint(t, p, g, s, callback.Options{Serialize: locker})
		var both sync.WaitGroup
		both.Go(func() { deliver(h, alipayForm).is(t, p.Done) })
		<-running
		both.Go(func() { deliver(h, providers()["Alipay"].another).is(t, p.Done) })
		redistest.Await(t, time.Minute, "the second to wait for the lock, or to be answered", func() bool {
			return locker.Stats().Waiting == 1 || g.Stats().Abandoned > 0
		})
		if runs, _ := s.counts(); runs != 1 {
			t.Errorf("while the first runs: got %d runs, want 1", runs)
		}
		close(finish)
		both.Wait()
		s.once(t, 2)
		if len(s.told) != 0 {
			t.Errorf("the hook got %v, want nothing", s.told)
		}
	})
}

// If the order is not free in time, the event is answered with Later and is not in doubt. The
// hook is told, because the provider may not send it again.
func TestSerializeInVain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		locker, err := lock.New(storetest.At(t, rdb, prefix), "orders", &lock.Options{Budget: time.Minute, Wait: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		p, refund := callback.Alipay(), providers()["Alipay"].another
		p.Deadline = time.Minute
		var h http.Handler
		s := &shop{handle: func(_ context.Context, e *callback.Event) error {
			if e.DeliveryID == "n1" {
				deliver(h, refund).is(t, p.Later)
			}
			return nil
		}}
		h = endpoint(t, p, guardOf(t, rdb, prefix, idempotency.Reject{}, idempotency.Options{}), s, callback.Options{Serialize: locker})
		deliver(h, alipayForm).is(t, p.Done)
		if len(s.told) != 1 || !s.heard(lock.ErrHeld) {
			t.Fatalf("the hook got %v, want %v alone", s.told, lock.ErrHeld)
		}
		if event, is := errors.AsType[*callback.EventError](s.told[0]); !is || event.DeliveryID != "n2" {
			t.Errorf("the hook got %v, want an EventError of the event that waited", s.told)
		}
		deliver(h, refund).is(t, p.Done)
		s.once(t, 2)
	})
}

// Events without an order do not wait for each other, and the hook is told.
func TestSerializeWithoutOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		locker, err := lock.New(storetest.At(t, rdb, prefix), "orders", &lock.Options{Budget: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		p := callback.StandardWebhooks("acme")
		p.Deadline = time.Minute
		var h http.Handler
		s := &shop{handle: func(_ context.Context, e *callback.Event) error {
			if e.DeliveryID == "msg_1" {
				deliver(h, "another", "Webhook-Id", "msg_2").is(t, p.Done)
			}
			return nil
		}}
		h = endpoint(t, p, guard(t, rdb, prefix, idempotency.Options{}), s, callback.Options{Serialize: locker})
		deliver(h, "anything", "Webhook-Id", "msg_1").is(t, p.Done)
		s.once(t, 2)
		if len(s.told) != 2 || !s.heard(callback.ErrNoOrder) {
			t.Errorf("the hook got %v, want %v for each event", s.told, callback.ErrNoOrder)
		}
	})
}

// If Redis is down and the lock of an order cannot be had, its event is not handled and
// not in doubt.
func TestLocksAreAway(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, prefix := srv.Client(t), srv.Prefix(t)
	away := &redistest.CutClient{Client: rdb}
	locker, err := lock.New(storetest.At(t, away, prefix), "orders", &lock.Options{Lease: time.Hour, Budget: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s, p := &shop{}, callback.Alipay()
	g := guardOf(t, rdb, prefix, idempotency.Reject{}, idempotency.Options{})
	h := endpoint(t, p, g, s, callback.Options{Serialize: locker})
	away.Cut("refused")
	deliver(h, alipayForm).is(t, p.Later)
	away.Mend()
	if runs, _ := s.counts(); runs != 0 || len(s.told) != 1 || !s.heard(script.ErrMaybeExecuted) {
		t.Errorf("got %d runs, and the hook got %v, want 0 and %v alone", runs, s.told, script.ErrMaybeExecuted)
	}
	s.handle = func(context.Context, *callback.Event) error {
		away.Cut("refused")
		return nil
	}
	told := len(s.told)
	deliver(h, alipayForm).is(t, p.Done)
	away.Mend()
	if s.once(t, 1); len(s.told) == told {
		t.Error("the hook was told nothing, want it told that the lock was not given back")
	}
}
