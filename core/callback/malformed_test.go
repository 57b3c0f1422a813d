package callback_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMalformed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		s, p := &shop{}, callback.Stripe()
		h := endpoint(t, p, guard(t, rdb, prefix, idempotency.Options{}), s, callback.Options{MaxBody: 200})
		for _, body := range []string{
			"", "{", "[]", "null", `{"id":1.5,"type":"t"}`, `{"id":"a","id":"b","type":"t"}`, `{"id":"a","ID":"b","type":"t"}`,
			`{"id":{},"type":"t"}`, `{"id":"","type":"t"}`, `{"id":"a"}`, "{\"id\":\"\xff\",\"type\":\"t\"}",
		} {
			deliver(h, body).is(t, p.Refused)
		}
		large := p.Refused
		large.Status = 413
		deliver(h, strings.Repeat(" ", 201)).is(t, large)
		broken := httptest.NewRequest("POST", "/callback", iotest.ErrReader(errBook))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, broken)
		(response{w.Code, w.Header().Get("Content-Type"), w.Body.String()}).is(t, p.Refused)
		if runs, _ := s.counts(); runs != 0 || !s.heard(callback.ErrMalformed) || !s.heard(gate.ErrBodyTooLarge) || !s.heard(gate.ErrBodyBroken) {
			t.Errorf("got %d runs, and the hook got %v, want 0, and each of the three faults", runs, s.told)
		}
	})
}

// Without MaxBody, a megabyte is read.
func TestDefaultMaxBody(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	s, p := &shop{}, callback.Alipay()
	h := endpoint(t, p, guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{}), s, callback.Options{})
	form := alipayForm + "&x=" + strings.Repeat("x", callback.DefaultMaxBody-len(alipayForm)-len("&x="))
	if got := deliver(h, form+"x"); got.status != 413 {
		t.Errorf("a body that is too large: got %+v, want 413", got)
	}
	deliver(h, form).is(t, p.Done)
}

// If something has read the body before, the wiring is wrong. The provider must send the
// event again, so the delivery is not refused.
func TestBodyIsConsumed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		s, p := &shop{}, callback.Alipay()
		h := endpoint(t, p, guard(t, rdb, prefix, idempotency.Options{}), s, callback.Options{})
		reads := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			h.ServeHTTP(w, r)
		})
		deliver(reads, alipayForm).is(t, p.Later)
		if runs, _ := s.counts(); runs != 0 || !s.heard(gate.ErrBodyConsumed) {
			t.Errorf("got %d runs, and the hook got %v, want 0 and %v", runs, s.told, gate.ErrBodyConsumed)
		}
	})
}

// The events of your own preset are checked before Redis is asked.
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
			t.Errorf("%s: got %d runs, and the hook got %v, want 100 and no %v if it is fine (%t)",
				name, runs, s.told, callback.ErrMalformed, c.fine)
		}
	}
}

// A member that may be missing may not be there twice, because it tells two events apart.
func TestDoubledMembers(t *testing.T) {
	t.Parallel()
	wechat := `{"event_type":"REFUND.SUCCESS","resource":{"out_trade_no":"o1","out_refund_no":"r1","out_refund_no":"r2"}}`
	if items, err := callback.WeChatPay().Items(nil, []byte(wechat)); !errors.Is(err, callback.ErrMalformed) {
		t.Errorf("WeChatPay: got %+v, %v, want %v", items, err, callback.ErrMalformed)
	}
	alipay := alipayForm + "&out_biz_no=b1&out_biz_no=b2"
	if items, err := callback.Alipay().Items(nil, []byte(alipay)); !errors.Is(err, callback.ErrMalformed) {
		t.Errorf("Alipay: got %+v, %v, want %v", items, err, callback.ErrMalformed)
	}
}

// If a member that tells events apart is missing, two events would be one.
func TestMembersAreRequired(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		preset callback.Preset
		body   string
	}{
		{callback.WeChatPay(), `{"id":"w","event_type":"t","resource":{}}`},
		{callback.WeChatPay(), `{"id":"w","resource":{"out_trade_no":"o"}}`},
		{callback.PayPal(), `{"event_type":"t"}`},
		{callback.PayPal(), `{"id":"a"}`},
		{callback.Square(), `{"type":"t"}`},
		{callback.Square(), `{"event_id":"a"}`},
		{callback.Adyen(), adyen(`{"pspReference":"p","success":"true"}`)},
		{callback.Adyen(), adyen(`{"eventCode":"c","success":"true"}`)},
		{callback.Adyen(), adyen(`{"eventCode":"c","pspReference":"p"}`)},
	} {
		if items, err := c.preset.Items(nil, []byte(c.body)); !errors.Is(err, callback.ErrMalformed) {
			t.Errorf("%s of %s: got %+v, %v, want %v", c.body, c.preset.Name, items, err, callback.ErrMalformed)
		}
	}
}
