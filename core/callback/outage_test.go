package callback_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// While Redis is down, nothing runs and nothing is acknowledged. An event whose end Redis
// missed is acknowledged when Redis is back, and does not run again.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	s, p := &shop{}, callback.Alipay()
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{Budget: 2 * time.Second})
	if err := g.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	unguarded, err := g.WithFail(idempotency.RunUnguarded) // which callbacks do not heed
	if err != nil {
		t.Fatal(err)
	}
	made, err := callback.New(p, unguarded, demoVerify, s.book, &callback.Options{OnError: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	h := nethttp.Handler(made)

	srv.Pause(t)
	deliver(h, alipayForm).is(t, p.Later)
	if runs, _ := s.counts(); runs != 0 || !s.heard(script.ErrMaybeExecuted) {
		t.Errorf("without a claim: got %d runs, and the hook got %v, want 0 and %v",
			runs, s.told, script.ErrMaybeExecuted)
	}
	drains := func(when string) {
		t.Helper()
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := made.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain %s: got %v, want %v", when, err, context.DeadlineExceeded)
		}
	}
	drains("while a claim may be granted that no caller was told of")
	srv.Resume(t)
	if err := made.Drain(t.Context()); err != nil || g.Stats().Undoing != 0 {
		t.Errorf("Drain: got %v and stats %+v, want no error, and the claim undone", err, g.Stats())
	}

	s.handle = func(context.Context, *callback.Event) error {
		srv.Pause(t)
		return nil
	}
	told := len(s.told)
	deliver(h, alipayForm).is(t, p.Later)
	s.once(t, 1)
	if len(s.told) == told {
		t.Error("the hook was told nothing, want it told that the booking is not noted")
	}
	drains("while the booking is not noted")
	srv.Resume(t)
	if err := made.Drain(t.Context()); err != nil || g.Stats().Completed != 1 {
		t.Errorf("Drain: got %v and stats %+v, want no error and one completed", err, g.Stats())
	}
	deliver(h, alipayForm).is(t, p.Done)
	s.once(t, 1)
	if runs, _ := s.counts(); runs != 1 {
		t.Errorf("got %d runs, want 1", runs)
	}
}

// TestHowTheBackgroundEndsIsTold: the booking was not noted, and another delivery has booked too
// when Redis is back.
func TestHowTheBackgroundEndsIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
		to := func(rdb redis.UniversalClient, s *shop) http.Handler {
			return endpoint(t, callback.Alipay(), guard(t, rdb, "neap", idempotency.Options{Lease: 30 * time.Second}), s, callback.Options{})
		}
		first, second := new(shop), new(shop)
		first.handle = func(context.Context, *callback.Event) error {
			rdb.Cut("refused")
			return nil
		}
		deliver(to(rdb, first), alipayForm).is(t, callback.Alipay().Later)
		time.Sleep(time.Minute) // the lease
		deliver(to(rdb.Client, second), alipayForm).is(t, callback.Alipay().Done)
		second.once(t, 1)
		if first.heard(idempotency.ErrLost) {
			t.Errorf("before Redis is back: the hook got %v, want no %v", first.told, idempotency.ErrLost)
		}
		rdb.Mend()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !first.heard(idempotency.ErrLost) {
			t.Errorf("when Redis is back: the hook got %v, want %v", first.told, idempotency.ErrLost)
		}
	})
}
