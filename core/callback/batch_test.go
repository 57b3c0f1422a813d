package callback_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
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
