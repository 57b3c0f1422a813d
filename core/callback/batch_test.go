package callback_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// If a part of a batch fails, the events that are done are not done again.
func TestBatch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		const item = `{"eventCode":"CAPTURE","pspReference":"psp%","success":"true","merchantReference":"o%"}`
		var items []string
		for _, n := range []string{"1", "2", "3"} {
			items = append(items, strings.ReplaceAll(item, "%", n))
		}
		body := adyen(items...)
		fail := func(_ context.Context, e *callback.Event) error {
			if e.Order == "o2" {
				return errBook
			}
			return nil
		}
		s, p := &shop{handle: fail}, callback.Adyen()
		h := endpoint(t, p, guard(t, rdb, prefix, idempotency.Options{}), s, callback.Options{})
		for range 2 {
			deliver(h, body).is(t, p.Later)
		}
		s.once(t, 2)
		if runs, _ := s.counts(); runs != 4 {
			t.Errorf("got %d runs, want 4", runs)
		}
		s.mu.Lock()
		s.handle = nil
		s.mu.Unlock()
		deliver(h, body).is(t, p.Done)
		s.once(t, 3)
		for _, body := range []string{adyen(), adyen(`{}`), adyen(items[0], `{"eventCode":"CAPTURE"}`), `{"notificationItems":{}}`} {
			deliver(h, body).is(t, p.Refused)
		}
	})
}

// Drain waits for all events of a delivery that was answered before they were handled, also
// between two of them.
func TestDrain(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb := srv.Client(t)
	var armed atomic.Bool
	goOn, between, begin := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	rdb.AddHook(redistest.BeforeHook(func(redis.Cmder) {
		if armed.Load() && calls.Add(1) == 2 { // after the first event is noted
			close(between)
			<-begin
		}
	}))
	s, p := &shop{handle: func(context.Context, *callback.Event) error {
		<-goOn
		return nil
	}}, callback.Adyen()
	p.Deadline = 100 * time.Millisecond
	g := guard(t, rdb, srv.Prefix(t), idempotency.Options{Budget: time.Minute})
	made, err := callback.New(p, g, demoVerify, s.book, nil)
	if err := errors.Join(err, g.Warm(t.Context())); err != nil { // so that the server has the scripts
		t.Fatal(err)
	}
	redistest.Await(t, time.Minute, "the handler to run", func() bool { // Verify may be late
		deliver(nethttp.Handler(made), adyen(adyenOf("o1"), adyenOf("o2"))).is(t, p.Later)
		runs, _ := s.counts()
		return runs == 1
	})
	ended, end := context.WithCancel(t.Context())
	end()
	drains := func(when string) {
		t.Helper()
		if err := made.Drain(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Drain %s: got %v, want %v", when, err, context.Canceled)
		}
	}
	drains("beside a handler")
	armed.Store(true)
	close(goOn)
	<-between
	drains("between two events")
	close(begin)
	if err := made.Drain(t.Context()); err != nil {
		t.Errorf("Drain: got %v, want no error", err)
	}
	if runs, _ := s.counts(); runs != 2 {
		t.Errorf("after Drain: got %d runs, want 2", runs)
	}
}

func adyenOf(order string) string {
	return `{"eventCode":"CAPTURE","pspReference":"psp-` + order + `","success":"true","merchantReference":"` + order + `"}`
}

// Items after a rejected item are handled. If one item of a batch must be sent again, the
// answer for the whole batch is Later, whatever became of the other items.
func TestBatchWithARejection(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		for name, c := range map[string]struct {
			orders []string
			ack    bool
			want   func(callback.Preset) response
			booked int
		}{
			"refused":      {[]string{"never", "o1"}, false, func(p callback.Preset) response { return of(p.Refused) }, 1},
			"acknowledged": {[]string{"never", "o1"}, true, func(p callback.Preset) response { return of(p.Done) }, 1},
			"later":        {[]string{"never", "later", "o1"}, true, func(p callback.Preset) response { return of(p.Later) }, 1},
			"laterStill":   {[]string{"later", "never", "o1"}, false, func(p callback.Preset) response { return of(p.Later) }, 1},
		} {
			s, p := &shop{handle: func(_ context.Context, e *callback.Event) error {
				switch e.Order {
				case "never":
					return callback.Reject(errBook)
				case "later":
					return errBook
				}
				return nil
			}}, callback.Adyen()
			var items []string
			for _, order := range c.orders {
				items = append(items, adyenOf(order))
			}
			h := endpoint(t, p, guard(t, rdb, prefix+name, idempotency.Options{}), s, callback.Options{AckRejected: c.ack})
			for range 2 {
				if got := deliver(h, adyen(items...)); got != c.want(p) {
					t.Errorf("%s: got %+v, want %+v", name, got, c.want(p))
				}
			}
			s.once(t, c.booked)
		}
	})
}

// An item's payload is the item alone, and not its batch.
func TestPayloadOfAnItem(t *testing.T) {
	t.Parallel()
	items, err := callback.Adyen().Items(nil, []byte(adyen(adyenOf("o1"), adyenOf("o2"))))
	if err != nil || len(items) != 2 || string(items[0].Payload) != adyenOf("o1") || string(items[1].Payload) != adyenOf("o2") {
		t.Errorf("got %+v, %v, want two items, each with its own payload", items, err)
	}
}
