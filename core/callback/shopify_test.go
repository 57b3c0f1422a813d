package callback_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/nethttp"
)

const (
	shopifySecret = "the client secret of the app"
	paidOrder     = `{"id":820982911946154508,"admin_graphql_api_id":"gid://shopify/Order/820982911946154508","financial_status":"paid"}`
)

func shopifySignature(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// The scheme is that of Shopify's documentation, which has no vector.
func TestShopifySignature(t *testing.T) {
	t.Parallel()
	const oldName, newName = "X-Shopify-Hmac-SHA256", "Shopify-Hmac-Sha256"
	good := shopifySignature(shopifySecret, paidOrder)
	v := must(t, callback.VerifyShopify, shopifySecret)
	rotated := must(t, callback.VerifyShopify, "the new one", shopifySecret)
	// The last digit before the padding has two bits that a lax decoder ignores.
	digits := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	lax := good[:42] + string(digits[strings.IndexByte(digits, good[42])|1]) + "="
	if raw, err := base64.StdEncoding.DecodeString(lax); err != nil || lax == good || base64.StdEncoding.EncodeToString(raw) != good {
		t.Fatalf("got %q, %v, want another spelling of %q", lax, err, good)
	}
	for _, c := range []struct {
		verify callback.Verify
		d      *callback.Delivery
		want   bool
	}{
		{v, signedDelivery(paidOrder, oldName, good), true},
		{v, signedDelivery(paidOrder, newName, good), true},
		{v, signedDelivery(paidOrder, oldName, good, newName, good), true},
		{rotated, signedDelivery(paidOrder, oldName, good), true},
		{must(t, callback.VerifyShopify, "another"), signedDelivery(paidOrder, oldName, good), false},
		{v, signedDelivery(paidOrder+" ", oldName, good), false},
		{v, signedDelivery(strings.Replace(paidOrder, "paid", "open", 1), oldName, good), false},
		{v, signedDelivery(paidOrder, oldName, good, newName, shopifySignature("another", paidOrder)), false},
		{v, signedDelivery(paidOrder, oldName, "", newName, good), false},
		{v, signedDelivery(paidOrder, oldName, good, oldName, good), false},
		{v, signedDelivery(paidOrder, newName, good, newName, good), false},
		{v, signedDelivery(paidOrder, oldName, lax), false},
		{v, signedDelivery(paidOrder, oldName, strings.TrimSuffix(good, "=")), false},
		{v, signedDelivery(paidOrder, oldName, good+"="), false},
		{v, signedDelivery(paidOrder, oldName, good[:20]+"\n"+good[20:]), false},
		{v, signedDelivery(paidOrder, oldName, " "+good), false},
		{v, signedDelivery(paidOrder, oldName, good+","+good), false},
		{v, signedDelivery(paidOrder, oldName, ""), false},
		{v, signedDelivery(paidOrder), false},
	} {
		if got := verified(t, c.verify, c.d); got != c.want {
			t.Errorf("%v: got it proven %t, want %t", c.d.Header, got, c.want)
		}
	}
}

// TestShopifyFields reads a topic and an id in both spellings. They are not signed, so a
// delivery that lacks them, or has two, is not refused.
func TestShopifyFields(t *testing.T) {
	t.Parallel()
	const topic, id, webhook = "X-Shopify-Topic", "X-Shopify-Event-Id", "X-Shopify-Webhook-Id"
	p := callback.Shopify()
	var first callback.Item
	for _, header := range [][]string{
		{topic, "orders/paid", id, "e1"}, {"Shopify-Topic", "orders/paid", "Shopify-Event-Id", "e1"}, {topic, "orders/paid", "Shopify-Event-Id", "e1"},
		{topic, "orders/paid", id, "e1", "Shopify-Topic", "orders/paid", "Shopify-Event-Id", "e1", webhook, "w1"},
		{topic, "order", "Shopify-Topic", "orders/paid", id, "e1", id, "e2"},
	} {
		item := itemOf(t, p, delivery(paidOrder, header...), paidOrder)
		if first.DeliveryID == "" {
			first = item
		}
		if item.DeliveryID != first.DeliveryID || item.Transition != first.Transition || item.Order != "820982911946154508" {
			t.Errorf("%q: got %+v, want the same event as %+v", header, item, first)
		}
	}
	for _, header := range [][]string{
		{topic, "orders/create", id, "e1"}, {topic, "orders/paid", id, "e2"}, {topic, "orders", id, "paid/e1"}, {id, "e1"}, {topic, "orders/paid"}, nil,
	} {
		if item := itemOf(t, p, delivery(paidOrder, header...), paidOrder); item.DeliveryID == first.DeliveryID || item.Transition != first.Transition {
			t.Errorf("%q: got %+v, want another delivery of the bytes of %+v", header, item, first)
		}
	}
	one := itemOf(t, p, delivery(paidOrder, topic, "orders/paid", webhook, "w1"), paidOrder)
	for header, same := range map[[2]string]bool{{"Shopify-Webhook-Id", "w1"}: true, {webhook, "w2"}: false, {id, "w2"}: false} {
		item := itemOf(t, p, delivery(paidOrder, "Shopify-Topic", "orders/paid", header[0], header[1]), paidOrder)
		if (item.DeliveryID == one.DeliveryID) != same || item.Transition != one.Transition || one.Transition != first.Transition {
			t.Errorf("%q: got %+v, want the bytes of %+v, and the same delivery: %t", header, item, one, same)
		}
	}
	for body, order := range map[string]string{
		`{"id":2,"order_id":1}`: "1", `{"id":2,"order_id":null}`: "2", `{"id":2,"id":1}`: "", `{"id":1,"order_id":2,"order_id":3}`: "", `{}`: "", `no JSON`: "",
	} {
		if item := itemOf(t, p, delivery(body, topic, "refunds/create", id, "e1"), body); item.Order != order {
			t.Errorf("%s: got the order %q, want %q", body, item.Order, order)
		}
	}
}

// TestShopifyDeliveries sends a signed body again, by two subscriptions, and altered by somebody with a copy.
func TestShopifyDeliveries(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		verify := must(t, callback.VerifyShopify, shopifySecret)
		receive := func(p callback.Preset, g *idempotency.Guard, opts callback.Options) (*shop, http.Handler) {
			s := &shop{}
			opts.OnError = s.hear
			e, err := callback.New(p, g, verify, s.book, &opts)
			if err != nil {
				t.Fatal(err)
			}
			return s, nethttp.Handler(e)
		}
		fields := func(signature, topic, event, webhook string) []string {
			return []string{"X-Shopify-Hmac-Sha256", signature, "X-Shopify-Topic", topic, "X-Shopify-Event-Id", event, "X-Shopify-Webhook-Id", webhook}
		}
		good, p := shopifySignature(shopifySecret, paidOrder), callback.Shopify()
		s, h := receive(p, guard(t, rdb, prefix, idempotency.Options{}), callback.Options{})
		for _, webhook := range []string{"w1", "w1", "w2"} { // repeated, and of a second subscription
			deliver(h, paidOrder, fields(good, "orders/paid", "e1", webhook)...).is(t, p.Done)
		}
		if s.runs != 1 || len(s.told) > 0 {
			t.Fatalf("got %d booked, and the hook got %v, want one event", s.runs, s.told)
		}
		for i, altered := range [][]string{fields(good, "orders/paid", "e2", "w1"), fields(good, "orders/create", "e1", "w1"), fields(good, "", "", "w1")} {
			deliver(h, paidOrder, altered...).is(t, p.Done)
			if s.runs != 1 || len(s.told) != i+1 || !s.heard(callback.ErrAnotherDelivery) {
				t.Errorf("%q: got %d booked, and the hook got %v, want it told", altered, s.runs, s.told)
			}
		}
		if got := deliver(h, strings.Replace(paidOrder, "paid", "open", 1), fields(good, "orders/paid", "e3", "w3")...); got.status != 401 {
			t.Errorf("another body: got %+v, want a 401", got)
		}
		if s.runs != 1 {
			t.Errorf("got %d booked, want one", s.runs)
		}

		created := callback.Shopify()
		created.Name = "shopify-orders-create"
		apart, h := receive(created, guard(t, rdb, prefix, idempotency.Options{}), callback.Options{})
		deliver(h, paidOrder, fields(good, "orders/create", "e1", "w3")...).is(t, p.Done)
		if apart.runs != 1 || len(apart.told) > 0 {
			t.Errorf("a topic with a name of its own: got %d booked, and the hook got %v, want it handled", apart.runs, apart.told)
		}
		distinct, h := receive(p, guard(t, rdb, prefix+"distinct", idempotency.Options{}), callback.Options{DistinctDeliveries: true})
		for _, event := range []string{"e1", "e2", "e1"} {
			deliver(h, paidOrder, fields(good, "orders/paid", event, "w1")...).is(t, p.Done)
		}
		if distinct.runs != 2 || len(distinct.told) > 0 {
			t.Errorf("distinct deliveries: got %d booked, and the hook got %v, want two", distinct.runs, distinct.told)
		}
	})
}

// TestShopifyEventsWithEqualBytes: what Shopify calls an event has no Event-Id, and no time in
// its body. If the same change comes a second time, it counts as the first and the hook is
// told, unless each delivery is an event.
func TestShopifyEventsWithEqualBytes(t *testing.T) {
	t.Parallel()
	const event = `{"topic":"Product","action":"update","handle":"prices","fields_changed":["product[id: 'gid://shopify/Product/1'].title"]}`
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		for distinct, want := range map[bool]struct{ booked, told int }{false: {1, 1}, true: {2, 0}} {
			s, p := &shop{}, callback.Shopify()
			h := endpoint(t, p, guard(t, rdb, prefix+strconv.FormatBool(distinct), idempotency.Options{}), s, callback.Options{DistinctDeliveries: distinct})
			for _, webhook := range []string{"w1", "w1", "w2"} {
				deliver(h, event, "Shopify-Topic", "Product", "Shopify-Webhook-Id", webhook).is(t, p.Done)
			}
			if s.once(t, want.booked); len(s.told) != want.told || s.heard(callback.ErrAnotherDelivery) != (want.told > 0) {
				t.Errorf("distinct deliveries %t: the hook got %v, want %d errors", distinct, s.told, want.told)
			}
		}
	})
}
