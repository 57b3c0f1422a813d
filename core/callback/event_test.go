package callback_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// The handler has what the provider sent, and the request's values; its context
// does not end when the provider hangs up.
func TestHandlerOutlivesTheRequest(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	type mark struct{}
	ctx, hangUp := context.WithCancel(context.WithValue(t.Context(), mark{}, "this request"))
	s, p := &shop{}, callback.Alipay()
	s.handle = func(ctx context.Context, e *callback.Event) error {
		d := e.Delivery
		if d.Method != "POST" || d.Path != "/callback" || d.RawQuery != "a=b" || string(d.Body) != alipayForm ||
			!slices.Equal(d.Header.Values("X-Twice"), []string{"1", "2"}) || string(e.Payload) != alipayForm {
			t.Errorf("it gets %+v", d)
		}
		hangUp()
		if ctx.Err() != nil || ctx.Value(mark{}) != "this request" {
			t.Errorf("its context: %v, %v", ctx.Err(), ctx.Value(mark{}))
		}
		return nil
	}
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	h := endpoint(t, p, g, s, callback.Options{})
	r := httptest.NewRequestWithContext(ctx, "POST", "/callback?a=b", strings.NewReader(alipayForm))
	r.Header.Set(signature, "ok")
	r.Header["X-Twice"] = []string{"1", "2"}
	h.ServeHTTP(httptest.NewRecorder(), r)
	redistest.Await(t, time.Minute, "the booking to be noted", func() bool { return g.Stats().Completed == 1 })
	deliver(h, alipayForm).is(t, p.Done)
	s.once(t, 1)
}

// What a preset of one's own finds is checked before Redis is asked.
func TestItemsAreChecked(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	many := func(n int) (items []callback.Item) {
		for i := range n {
			items = append(items, callback.Item{DeliveryID: fmt.Sprint("n", i)})
		}
		return items
	}
	for name, c := range map[string]struct {
		items []callback.Item
		fine  bool
	}{
		"none": {nil, false}, "a hundred": {many(100), true}, "too many": {many(101), false},
		"no key": {[]callback.Item{{DeliveryID: "n1"}, {Transition: "not asked for"}}, false},
	} {
		s, p := &shop{}, callback.Alipay()
		p.Deadline = time.Minute
		p.Items = func(*callback.Delivery, []byte) ([]callback.Item, error) { return c.items, nil }
		want := p.Refused
		if c.fine {
			want = p.Done
		}
		deliver(endpoint(t, p, g, s, callback.Options{}), alipayForm).is(t, want)
		if runs, _ := s.counts(); c.fine != (runs == 100) || c.fine == s.heard(callback.ErrMalformed) {
			t.Errorf("%s: %d runs; the hook heard %v", name, runs, s.told)
		}
	}
}

// A guard may remember for exactly as long as the preset asks, and no shorter.
func TestRetentionIsEnough(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, prefix := srv.Client(t), srv.Prefix(t)
	for name, p := range providers() {
		for short, fine := range map[time.Duration]bool{0: true, time.Second: false} {
			g, err := idempotency.New(rdb, "exact", &idempotency.Options{
				Prefix: prefix, Retention: p.preset.Keep - short, DoubtRetention: month,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := callback.New(p.preset, g, demoVerify, (&shop{}).book, nil); (err == nil) != fine {
				t.Errorf("%s, %v short: %v", name, short, err)
			}
		}
	}
}

// A rejection of which nobody says why is one nonetheless.
func TestRejectNil(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	s, p := &shop{handle: func(context.Context, *callback.Event) error { return callback.Reject(nil) }}, callback.Alipay()
	h := endpoint(t, p, guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{}), s, callback.Options{})
	for range 2 {
		deliver(h, alipayForm).is(t, p.Refused)
	}
	if runs, bookings := s.counts(); runs != 1 || bookings != 0 {
		t.Errorf("%d runs, %d bookings", runs, bookings)
	}
}

// Where not told otherwise, a megabyte is read.
func TestDefaultMaxBody(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	s, p := &shop{}, callback.Alipay()
	h := endpoint(t, p, guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{}), s, callback.Options{})
	form := alipayForm + "&x=" + strings.Repeat("x", callback.DefaultMaxBody-len(alipayForm)-len("&x="))
	if got := deliver(h, form+"x"); got.status != 413 {
		t.Errorf("%+v", got)
	}
	deliver(h, form).is(t, p.Done)
}

// The name of a preset ends where the colon of its keys begins.
func TestPresetNames(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	for name, fine := range map[string]bool{
		"aZ-09": true, strings.Repeat("n", 32): true, strings.Repeat("n", 33): false, "a:b": false, "a b": false, "\xc3\xa9": false,
	} {
		p := callback.Alipay()
		p.Name = name
		if _, err := callback.New(p, g, demoVerify, (&shop{}).book, nil); (err == nil) != fine {
			t.Errorf("%q: %v", name, err)
		}
	}
}
