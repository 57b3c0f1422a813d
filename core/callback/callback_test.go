package callback_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

var errBook = errors.New("the books are closed")

// Nothing is acknowledged that was not done, for whatever reason it was not done. The
// next delivery does it.
func TestLater(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		for name, fails := range map[string]callback.Handler{
			"Error": func(context.Context, *callback.Event) error { return errBook },
			"Panic": func(context.Context, *callback.Event) error { panic(errBook) },
			"Lost": func(ctx context.Context, e *callback.Event) error {
				if err := rdb.Del(ctx, prefix+"Lost:guard:callbacks:{"+e.Key+"}").Err(); err != nil {
					t.Error(err)
				}
				c, _ := idempotency.FromContext(ctx)
				if err := c.Renew(ctx); !errors.Is(err, idempotency.ErrLost) || ctx.Err() == nil {
					t.Errorf("Renew: got %v, and the context's error %v, want %v and an end",
						err, ctx.Err(), idempotency.ErrLost)
				}
				return context.Cause(ctx)
			},
		} {
			t.Run(name, func(t *testing.T) {
				s := &shop{handle: fails}
				p := callback.Alipay()
				h := endpoint(t, p, guard(t, rdb, prefix+name, idempotency.Options{}), s, callback.Options{})
				for range 2 {
					deliver(h, alipayForm).is(t, p.Later)
				}
				s.mu.Lock()
				told := len(s.told)
				s.handle = nil
				s.mu.Unlock()
				if runs, bookings := s.counts(); runs != 2 || bookings != 0 || told < 2 {
					t.Errorf("got %d runs, %d bookings and %d errors told, want 2, 0 and 2 at least",
						runs, bookings, told)
				}
				for range 2 {
					deliver(h, alipayForm).is(t, p.Done)
				}
				s.once(t, 1)
			})
		}
	})
}

// Only one of many concurrent deliveries runs.
func TestConcurrentDeliveries(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		const deliveries = 50
		p := callback.Alipay()
		p.Deadline = time.Minute
		var answered atomic.Int64
		s := &shop{handle: func(context.Context, *callback.Event) error {
			redistest.Await(t, time.Minute, "the others to be answered", func() bool { return answered.Load() == deliveries-1 })
			return nil
		}}
		var wg sync.WaitGroup
		var acked atomic.Int64
		for i := range deliveries {
			h := endpoint(t, p, guard(t, rdb, prefix, idempotency.Options{}), s, callback.Options{})
			wg.Go(func() {
				got := deliver(h, alipayForm)
				answered.Add(1)
				if got == of(p.Done) {
					acked.Add(1)
				} else if got != of(p.Later) {
					t.Errorf("delivery %d: got %+v, want it done or to come later", i, got)
				}
			})
		}
		wg.Wait()
		s.once(t, 1)
		if acked.Load() != 1 || len(s.told) != 0 {
			t.Errorf("got %d acknowledged, and the hook got %v, want 1 and nothing", acked.Load(), s.told)
		}
	})
}

// A delivery that is not the provider's reaches neither Redis nor the handler. The event
// can still be delivered afterwards.
func TestUnverified(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin := srv.Admin(t)
	s, p := &shop{}, callback.Alipay()
	h := endpoint(t, p, guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{}), s, callback.Options{})
	redistest.ResetStats(t, admin)
	want := p.Refused
	want.Status = 401
	deliver(h, alipayForm, signature, "").is(t, want)
	if asked := redistest.Asked(t, admin); len(asked) != 0 {
		t.Errorf("Redis was asked %v, want nothing", asked)
	}
	if runs, _ := s.counts(); runs != 0 || !s.heard(callback.ErrUnverified) || !s.heard(errUnsigned) {
		t.Errorf("got %d runs, and the hook got %v, want 0, and %v with its reason",
			runs, s.told, callback.ErrUnverified)
	}
	deliver(h, alipayForm).is(t, p.Done)
	s.once(t, 1)
}

// A rejected event is remembered, and not handled again.
func TestRejected(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		reject := func(context.Context, *callback.Event) error { return callback.Reject(errBook) }
		wrap := func(context.Context, *callback.Event) error {
			return fmt.Errorf("%w: %w", callback.ErrRejected, errBook)
		}
		for name, handle := range map[string]callback.Handler{"Refused": reject, "Acknowledged": reject, "wrapped": wrap} {
			ack := name == "Acknowledged"
			s, p := &shop{handle: handle}, callback.Alipay()
			h := endpoint(t, p, guard(t, rdb, prefix+name, idempotency.Options{}), s, callback.Options{AckRejected: ack})
			want := p.Refused
			if ack {
				want = p.Done
			}
			for range 3 {
				deliver(h, alipayForm).is(t, want)
			}
			if runs, bookings := s.counts(); runs != 1 || bookings != 0 || !s.heard(errBook) || !s.heard(callback.ErrRejected) {
				t.Errorf("%s: got %d runs, %d bookings, and the hook got %v, want 1, 0 and an ErrRejected of %v",
					name, runs, bookings, s.told, errBook)
			}
		}
	})
}

// A rejection without a reason is also a rejection.
func TestRejectNil(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	s, p := &shop{handle: func(context.Context, *callback.Event) error { return callback.Reject(nil) }}, callback.Alipay()
	h := endpoint(t, p, guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{}), s, callback.Options{})
	for range 2 {
		deliver(h, alipayForm).is(t, p.Refused)
	}
	if runs, bookings := s.counts(); runs != 1 || bookings != 0 {
		t.Errorf("got %d runs and %d bookings, want 1 and 0", runs, bookings)
	}
}

// A handler that is slower than the provider waits goes on. The next delivery
// acknowledges what it did.
func TestDeadline(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		finish := make(chan struct{})
		alive := make(chan error, 1)
		s, p := &shop{handle: func(ctx context.Context, _ *callback.Event) error {
			<-finish
			alive <- ctx.Err()
			return nil
		}}, callback.Alipay()
		p.Deadline = 5 * time.Second // long enough for the handler to begin
		g := guard(t, rdb, prefix, idempotency.Options{})
		h := endpoint(t, p, g, s, callback.Options{})
		deliver(h, alipayForm).is(t, p.Later)
		redistest.Await(t, time.Minute, "the hook to be told", func() bool { return s.heard(callback.ErrDeadline) })
		close(finish)
		if err := <-alive; err != nil {
			t.Errorf("the handler's context has the error %v, want none", err)
		}
		redistest.Await(t, time.Minute, "the handler's end to be noted", func() bool { return g.Stats().Completed == 1 })
		deliver(endpoint(t, callback.Alipay(), g, s, callback.Options{}), alipayForm).is(t, p.Done)
		s.once(t, 1)
	})
}
