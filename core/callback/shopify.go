package callback

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/neap-go/neap/core/internal/jsonptr"
)

// Shopify has two spellings of its header fields: X-Shopify-Topic of webhooks, and
// Shopify-Topic of what it calls events.
const (
	shopifyOld = "X-Shopify-"
	shopifyNew = "Shopify-"
)

// shopifyField returns a field that is not signed, or "". So it proves nothing, and is no
// reason to refuse a delivery.
func shopifyField(d *Delivery, name string) string {
	return cmp.Or(d.Header.Get(shopifyNew+name), d.Header.Get(shopifyOld+name))
}

// Shopify returns the preset of Shopify's webhooks, and of its events, whose header fields
// have no X-. Its Deadline is 4 s and its Retention 4 days.
//
// Shopify signs the body alone, and its pages disagree on which id names an event. Two
// subscriptions get one change under one Event-Id and under two Webhook-Ids. So the key of
// an event is the hash of its body, and its DeliveryID is the topic and the Event-Id, or the
// Webhook-Id if there is no Event-Id, as with what Shopify calls events. The price is that
// two events with the same bytes count as one, also two topics that report one change: of
// the second, OnError is told ([ErrAnotherDelivery]). To handle such topics apart, give each
// an endpoint with a Name of its own. The body of what Shopify calls events has no time, so
// the same change a day later may have the same bytes: see Options.DistinctDeliveries.
//
// A delivery is not refused for what its header fields say or lack, except the signature.
// The Order is the body's order_id, or else its id, which is that of an order, a product or
// whatever the event is about. It is empty if the body has two.
//
// Shopify waits for 5 seconds, and sends again 8 times within 4 hours until a 2xx
// (https://shopify.dev/docs/apps/build/webhooks).
func Shopify() Preset {
	orders := []jsonptr.Pointer{pointer("/order_id"), pointer("/id")}
	p := plain("shopify", func(d *Delivery, payload []byte) ([]Item, error) {
		id := transition(shopifyField(d, "Topic"), cmp.Or(shopifyField(d, "Event-Id"), shopifyField(d, "Webhook-Id")))
		item := Item{DeliveryID: id, Transition: "sha256=" + digest(string(d.Body)), Payload: payload}
		if valid(payload) == nil {
			p := &picker{json: payload}
			if order := p.first(orders); p.err == nil { // one of two ids is not guessed
				item.Order = order
			}
		}
		return []Item{item}, nil
	})
	p.ByTransition, p.UnsignedID = true, true
	p.Deadline = 4 * time.Second
	return p
}

// shopifySecrets are client secrets. The others are access tokens.
var shopifySecrets = secretForm{others: []string{"shpat_", "shpca_", "shppa_"}}

// VerifyShopify returns a Verify that proves the header field X-Shopify-Hmac-Sha256, or
// Shopify-Hmac-Sha256, by one of the app's client secrets. For up to an hour after a change
// Shopify still signs with the old secret. The signature is of the body alone: it proves
// neither the topic nor the shop, nor any id
// (https://shopify.dev/docs/apps/build/webhooks/verify-deliveries).
//
// VerifyShopify returns an error if there is no secret, if one is empty or has white space
// around it, or if one is an access token of Shopify's.
func VerifyShopify(secrets ...string) (Verify, error) {
	if err := shopifySecrets.check("VerifyShopify", secrets); err != nil {
		return nil, err
	}
	return func(_ context.Context, d *Delivery) ([]byte, error) {
		const name = "Hmac-Sha256"
		signature, err := oneOf(d, shopifyNew+name, shopifyOld+name)
		if err != nil {
			return nil, err
		}
		for _, secret := range secrets {
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write(d.Body)
			want := base64.StdEncoding.EncodeToString(mac.Sum(nil)) // a decoder would take other spellings of the same bytes
			if hmac.Equal([]byte(signature), []byte(want)) {
				return d.Body, nil
			}
		}
		return nil, errSignature
	}, nil
}
