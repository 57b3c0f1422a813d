package callback_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/callback"
)

func delivery(body string, header ...string) *callback.Delivery {
	d := &callback.Delivery{Body: []byte(body), Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		d.Header.Add(header[i], header[i+1])
	}
	return d
}

// itemOf returns the one event of a delivery.
func itemOf(t *testing.T, p callback.Preset, d *callback.Delivery, payload string) callback.Item {
	t.Helper()
	items, err := p.Items(d, []byte(payload))
	if err != nil || len(items) != 1 {
		t.Fatalf("%s: got %+v, %v, want one item", payload, items, err)
	}
	return items[0]
}

// The error names the first fault, for the author of a sender.
func TestTheFirstFaultIsReported(t *testing.T) {
	t.Parallel()
	_, err := callback.Alipay().Items(nil, []byte("trade_status="))
	if !errors.Is(err, callback.ErrMalformed) || !strings.Contains(err.Error(), "out_trade_no") {
		t.Errorf("got %v, want %v that names out_trade_no", err, callback.ErrMalformed)
	}
}

func TestAdyenLists(t *testing.T) {
	t.Parallel()
	item := adyen(`{"eventCode":"c","pspReference":"p","success":"true"}`)
	for _, body := range []string{
		adyen(), item + "x", `{"notificationItems":{}}`, `{"notificationItems":[{}]}`, strings.Replace(item, `"live"`, `"notificationItems":[],"live"`, 1),
	} {
		if items, err := callback.Adyen().Items(nil, []byte(body)); !errors.Is(err, callback.ErrMalformed) {
			t.Errorf("%s: got %+v, %v, want %v", body, items, err, callback.ErrMalformed)
		}
	}
}

// TestAdyenOrders: an item whose merchantReference is no text is an event without an order,
// and the delivery's other items are found too. If it has two, only one of them is signed.
func TestAdyenOrders(t *testing.T) {
	t.Parallel()
	item := func(members string) string {
		return `{"eventCode":"c","pspReference":"p","success":"true"` + members + `}`
	}
	for members, order := range map[string]string{
		"": "", `,"merchantReference":"o:1"`: "o:1", `,"merchantReference":"o\ud83d"`: "", `,"merchantReference":{}`: "", `,"merchantReference":1.5`: "",
	} {
		items, err := callback.Adyen().Items(nil, []byte(adyen(item(members), adyenOf("o2"))))
		if err != nil || len(items) != 2 || items[0].Order != order || items[0].Transition != "c/p/true" || items[1].Order != "o2" {
			t.Errorf("%s: got %+v, %v, want two items, the first with the order %q", members, items, err, order)
		}
	}
	for _, members := range []string{`,"merchantReference":"o1","merchantReference":"o2"`, `,"merchantReference":"o1","MerchantReference":"o2"`} {
		if items, err := callback.Adyen().Items(nil, []byte(adyen(item(members)))); !errors.Is(err, callback.ErrMalformed) {
			t.Errorf("%s: got %+v, %v, want %v", members, items, err, callback.ErrMalformed)
		}
	}
}

// The body is what was signed, so the same body is the same event, whatever Verify
// returns.
func TestGitHubItems(t *testing.T) {
	t.Parallel()
	const push = `{"repository":{"full_name":"a/b"}}`
	first := itemOf(t, callback.GitHub(), delivery("signed"), push)
	if first.Order != "a/b" {
		t.Errorf("got the order %q, want \"a/b\"", first.Order)
	}
	for _, payload := range []string{"payload=%7B%7D", push + "x"} {
		again := itemOf(t, callback.GitHub(), delivery("signed"), payload)
		if again.Transition != first.Transition || again.Order != "" {
			t.Errorf("%s: got %+v, want the transition %q and no order", payload, again, first.Transition)
		}
	}
	if other := itemOf(t, callback.GitHub(), delivery("another"), push); other.Transition == first.Transition {
		t.Error("another body: got the same event, want another")
	}
}

func TestStandardWebhooksHaveOneID(t *testing.T) {
	t.Parallel()
	p := callback.StandardWebhooks("acme")
	for _, header := range [][]string{nil, {"Webhook-Id", "a", "Webhook-Id", "b"}, {"Webhook-Id", "a.b"}, {"Svix-Id", "a.b"}} {
		if items, err := p.Items(delivery("{}", header...), nil); !errors.Is(err, callback.ErrMalformed) {
			t.Errorf("%q: got %+v, %v, want %v", header, items, err, callback.ErrMalformed)
		}
	}
}

// A merchant is known by mchid, and by sp_mchid only if there is no mchid.
func TestWeChatPayMerchants(t *testing.T) {
	t.Parallel()
	for ids, want := range map[string]string{
		`"mchid":"m","sp_mchid":"s",`: "T/m/o/", `"sp_mchid":"s",`: "T/s/o/", ``: "T//o/",
	} {
		payload := `{"event_type":"T","resource":{` + ids + `"out_trade_no":"o"}}`
		if got := itemOf(t, callback.WeChatPay(), nil, payload); got.Transition != want {
			t.Errorf("%s: got the transition %q, want %q", payload, got.Transition, want)
		}
	}
}
