package callback_test

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
)

// provider is a preset, what the provider sends, and which answers it expects.
type provider struct {
	preset               callback.Preset
	body                 string
	header               []string
	item                 callback.Item // without its payload
	key                  string
	done, refused, later response
	another              string // another event of the same order
	anotherHeader        []string
	keep                 time.Duration
}

const (
	plainText  = "text/plain; charset=utf-8"
	alipayForm = "notify_id=n1&out_trade_no=o1&trade_status=TRADE_SUCCESS&total_amount=1.00"
)

func providers() map[string]provider {
	const hours = time.Hour
	ok, bad, wait := response{200, "", ""}, response{400, "", ""}, response{503, "", ""}
	return map[string]provider{
		"Stripe": {
			preset: callback.Stripe(),
			body:   `{"id":"evt_1","type":"charge.refunded","data":{"object":{"id":"ch_1"}}}`,
			item:   callback.Item{DeliveryID: "evt_1", Transition: "charge.refunded/ch_1", Order: "ch_1"},
			key:    "stripe:evt_1", done: ok, refused: bad, later: wait, keep: 96 * hours,
			another: `{"id":"evt_2","type":"charge.refunded","data":{"object":{"id":"ch_1"}}}`,
		},
		"PayPal": {
			preset: callback.PayPal(),
			body:   `{"id":"WH-1","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"c1"}}`,
			item:   callback.Item{DeliveryID: "WH-1", Transition: "PAYMENT.CAPTURE.COMPLETED/c1", Order: "c1"},
			key:    "paypal:WH-1", done: ok, refused: bad, later: wait, keep: 96 * hours,
			another: `{"id":"WH-2","event_type":"PAYMENT.CAPTURE.REFUNDED","resource":{"id":"c1"}}`,
		},
		"Square": {
			preset: callback.Square(),
			body:   `{"event_id":"e1","type":"payment.updated","data":{"id":"p1"}}`,
			item:   callback.Item{DeliveryID: "e1", Transition: "payment.updated/p1", Order: "p1"},
			key:    "square:e1", done: ok, refused: bad, later: wait, keep: 96 * hours,
			another: `{"event_id":"e2","type":"payment.updated","data":{"id":"p1"}}`,
		},
		"GitHub": {
			preset: callback.GitHub(),
			body:   `{"zen":"keep it simple"}`, header: []string{"X-GitHub-Delivery", "d1"},
			item: callback.Item{DeliveryID: "d1", Transition: "sha256=…"},
			done: ok, refused: bad, later: wait, keep: 96 * hours,
			another: `{"zen":"keep it simpler"}`, anotherHeader: []string{"X-GitHub-Delivery", "d2"},
		},
		"Shopify": {
			preset: callback.Shopify(),
			body:   `{"id":1}`, header: []string{"X-Shopify-Topic", "orders/paid", "X-Shopify-Event-Id", "e1"},
			item: callback.Item{DeliveryID: "orders%2Fpaid/e1", Transition: "sha256=…", Order: "1"},
			done: ok, refused: bad, later: wait, keep: 96 * hours,
			another: `{"id":2,"order_id":1}`, anotherHeader: []string{"Shopify-Topic", "refunds/create", "Shopify-Event-Id", "e2"},
		},
		"StandardWebhooks": {
			preset: callback.StandardWebhooks("acme"),
			body:   `anything`, header: []string{"Webhook-Id", "msg_1"},
			item: callback.Item{DeliveryID: "msg_1"},
			key:  "webhooks-acme:msg_1", done: ok, refused: bad, later: wait, keep: 96 * hours,
			another: `anything`, anotherHeader: []string{"Webhook-Id", "msg_2"},
		},
		"WeChatPay": {
			preset: callback.WeChatPay(),
			body:   `{"id":"w1","event_type":"REFUND.SUCCESS","resource":{"mchid":"m1","out_trade_no":"o1","out_refund_no":"r1"}}`,
			item:   callback.Item{DeliveryID: "w1", Transition: "REFUND.SUCCESS/m1/o1/r1", Order: "o1"},
			key:    "wechatpay:REFUND.SUCCESS/m1/o1/r1", keep: 48 * hours,
			done:    response{204, "", ""},
			refused: response{400, "application/json", `{"code":"FAIL","message":"the notification is refused"}`},
			later:   response{503, "application/json", `{"code":"FAIL","message":"send it again later"}`},
			another: `{"id":"w1","event_type":"REFUND.SUCCESS","resource":{"mchid":"m1","out_trade_no":"o1","out_refund_no":"r2"}}`,
		},
		"Alipay": {
			preset: callback.Alipay(), body: alipayForm,
			item: callback.Item{DeliveryID: "n1", Transition: "o1/TRADE_SUCCESS/", Order: "o1"},
			key:  "alipay:n1", keep: 48 * hours,
			done:    response{200, plainText, "success"},
			refused: response{400, plainText, "fail"},
			later:   response{503, plainText, "fail"},
			another: "notify_id=n2&out_trade_no=o1&trade_status=TRADE_SUCCESS&out_biz_no=b1&refund_fee=1.00",
		},
		"Adyen": {
			preset: callback.Adyen(),
			body:   adyen(`{"eventCode":"AUTHORISATION","pspReference":"psp1","success":"true","merchantReference":"o1"}`),
			item:   callback.Item{Transition: "AUTHORISATION/psp1/true", Order: "o1"},
			key:    "adyen:AUTHORISATION/psp1/true", keep: 31 * 24 * hours,
			done: response{200, plainText, "[accepted]"}, refused: bad, later: wait,
			another: adyen(`{"eventCode":"REFUND","pspReference":"psp2","success":"true","merchantReference":"o1"}`),
		},
	}
}

// adyen wraps items as Adyen does.
func adyen(items ...string) string {
	body := `{"live":"false","notificationItems":[`
	for i, item := range items {
		if i > 0 {
			body += ","
		}
		body += `{"NotificationRequestItem":` + item + `}`
	}
	return body + `]}`
}

// Every preset finds its events, and answers with exactly the bytes that its provider
// expects.
func TestPresets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		for name, p := range providers() {
			t.Run(name, func(t *testing.T) {
				s := &shop{}
				var seen *callback.Event
				s.handle = func(_ context.Context, e *callback.Event) error { seen = e; return nil }
				h := endpoint(t, p.preset, guard(t, rdb, prefix+name, idempotency.Options{}), s, callback.Options{})
				for range 2 {
					if got := deliver(h, p.body, p.header...); got != p.done {
						t.Errorf("done: got %+v, want %+v", got, p.done)
					}
				}
				s.once(t, 1)
				got := seen.Item
				if payload := string(got.Payload); payload != p.body && p.body != adyen(payload) {
					t.Errorf("got the payload %q, want the body or its one item", payload)
				}
				got.Payload = nil
				if p.key == "" {
					p.key = p.preset.Name + ":" + got.Transition
					p.item.Transition = got.Transition
				}
				if !reflect.DeepEqual(got, p.item) || seen.Key != p.key || seen.Attempt != 1 || seen.Fence == 0 {
					t.Errorf("got %+v, %q, want %+v, %q", got, seen.Key, p.item, p.key)
				}
				if got := deliver(h, p.another, p.anotherHeader...); got != p.done {
					t.Errorf("another: got %+v, want %+v", got, p.done)
				}
				s.once(t, 2)
				if p.preset.Retention != p.keep {
					t.Errorf("it is kept for %v, want %v", p.preset.Retention, p.keep)
				}
			})
		}
	})
}

func TestAlipayKeys(t *testing.T) {
	t.Parallel()
	for _, form := range []string{
		"", "%", "out_trade_no=o1&trade_status=S", "notify_id=n1&notify_id=n2&out_trade_no=o1&trade_status=S",
		"notify_id=&out_trade_no=o1&trade_status=S", "notify_id=n1&trade_status=S", "notify_id=n1&out_trade_no=o1",
	} {
		if items, err := callback.Alipay().Items(nil, []byte(form)); err == nil {
			t.Errorf("%q: got %+v, want an error", form, items)
		}
	}
	form := url.Values{"notify_id": {"n"}, "out_trade_no": {"a/b c"}, "trade_status": {"S"}, "out_biz_no": {"é"}}
	items, err := callback.Alipay().Items(nil, []byte(form.Encode()))
	if err != nil || items[0].Transition != "a%2Fb+c/S/%C3%A9" {
		t.Errorf("got %+v, %v, want the transition a%%2Fb+c/S/%%C3%%A9", items, err)
	}
}

// A provider gets its answer before it stops waiting, and not long before.
func TestDeadlinesAreShort(t *testing.T) {
	t.Parallel()
	waits := map[string]time.Duration{
		"WeChatPay": 5 * time.Second, "Shopify": 5 * time.Second, "Adyen": 10 * time.Second, "Square": 10 * time.Second,
		"GitHub": 10 * time.Second, "StandardWebhooks": 15 * time.Second,
	}
	for name, p := range providers() {
		most, published := waits[name]
		if !published {
			most = 10 * time.Second
		}
		if p.preset.Deadline >= most || p.preset.Deadline < most*3/4 {
			t.Errorf("%s: got a deadline of %v, want three quarters of %v at least, and less than it",
				name, p.preset.Deadline, most)
		}
	}
}

// TestOrders: the order of an event is found whatever the shape of the body is, and so is its
// JSON.
func TestOrders(t *testing.T) {
	t.Parallel()
	const pushed = `{"repository":{"full_name":"o/r"},"organization":{"login":"o"}}`
	for name, c := range map[string]struct {
		preset      callback.Preset
		body, order string
		payload     string // "" if it is the body
	}{
		"GitHub":                         {callback.GitHub(), pushed, "o/r", ""},
		"GitHub, a form":                 {callback.GitHub(), "payload=" + url.QueryEscape(pushed), "o/r", pushed},
		"GitHub, without a repository":   {callback.GitHub(), `{"organization":{"login":"o"}}`, "o", ""},
		"GitHub, two repositories":       {callback.GitHub(), `{"repository":{"full_name":"o/r","full_name":"o/s"},"organization":{"login":"o"}}`, "", ""},
		"GitHub, no name of one":         {callback.GitHub(), `{"repository":{"full_name":["o/r"]},"organization":{"login":"o"}}`, "", ""},
		"GitHub, without either":         {callback.GitHub(), `{"zen":"z"}`, "", ""},
		"GitHub, a form of another kind": {callback.GitHub(), "payload=1&payload=2", "", ""},
		"GitHub, a field before":         {callback.GitHub(), "a=1&payload=" + url.QueryEscape(pushed), "", ""},
		"Stripe":                         {callback.Stripe(), `{"id":"e","type":"t","data":{"object":{"id":"ch"}},"related_object":{"id":"m"}}`, "ch", ""},
		"Stripe, v2":                     {callback.Stripe(), `{"id":"e","object":"v2.core.event","type":"t","related_object":{"id":"m","type":"billing.meter"}}`, "m", ""},
	} {
		items, err := c.preset.Items(&callback.Delivery{Body: []byte(c.body)}, []byte(c.body))
		if err != nil || len(items) != 1 || items[0].Order != c.order || string(items[0].Payload) != cmp.Or(c.payload, c.body) {
			t.Errorf("%s: got %+v, %v, want the order %q and the payload %q", name, items, err, c.order, cmp.Or(c.payload, c.body))
		}
	}
}

// Two events that are about no object, or about one without an id, have the same kind
// only. So the second must not be taken for the first.
func TestNoTransition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		preset callback.Preset
		body   string
		ids    []string
	}{
		"Stripe": {callback.Stripe(), `{"id":"e","type":"balance.available","data":{"object":{%s}}}`, []string{"", `"id":""`, `"id":null`}},
		"Stripe, thin": {
			callback.Stripe(), `{"id":"e","type":"v1.billing.meter.error_report_triggered"%s}`, []string{"", `,"related_object":null`, `,"related_object":{"type":"billing.meter"}`},
		},
		"PayPal": {callback.PayPal(), `{"id":"e","event_type":"T","resource":{%s}}`, []string{"", `"id":""`, `"id":null`}},
		"Square": {callback.Square(), `{"event_id":"e","type":"t","data":{%s}}`, []string{"", `"id":""`, `"id":null`}},
	} {
		for _, id := range c.ids {
			body := fmt.Sprintf(c.body, id)
			items, err := c.preset.Items(nil, []byte(body))
			if err != nil || len(items) != 1 || items[0].DeliveryID != "e" || items[0].Transition != "" || items[0].Order != "" {
				t.Errorf("%s: %s: got %+v, %v, want one item with the delivery's id alone", name, body, items, err)
			}
		}
	}
}
