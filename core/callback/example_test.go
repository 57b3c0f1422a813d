package callback_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

const secret = "whsec_c2VjcmV0IG9mIHRoZSBlbmRwb2ludCwgMzIgYnl0ZXM="

// newGuard stands for idempotency.New on your Redis.
func newGuard() *idempotency.Guard {
	rdb := redistest.Embedded() // stands for your go-redis client
	g, err := idempotency.New(rdb, "callbacks", idempotency.Retry{}, &idempotency.Options{
		Retention: 4 * 24 * time.Hour, // Stripe sends again for three days
		Budget:    5 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	return g
}

func sign(parts ...string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(strings.Join(parts, ".")))
	return mac.Sum(nil)
}

// fromStripe makes a delivery with a signature as Stripe makes it.
func fromStripe(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/callbacks/stripe", strings.NewReader(body))
	now := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Stripe-Signature", "t="+now+",v1="+hex.EncodeToString(sign(now, body)))
	return r
}

// The same event arrives three times. The first time the database is down.
func ExampleNew() {
	verify, err := callback.VerifyStripe(secret)
	if err != nil {
		log.Fatal(err)
	}
	connected := false
	book := func(_ context.Context, e *callback.Event) error {
		if !connected {
			return errors.New("no database")
		}
		fmt.Println("booked", e.Key) // under a unique constraint, in your own transaction
		return nil
	}
	endpoint, err := callback.New(callback.Stripe(), newGuard(), verify, book, nil)
	if err != nil {
		log.Fatal(err)
	}

	h := nethttp.Handler(endpoint)
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, fromStripe(`{"id": "evt_17", "type": "charge.succeeded", "data": {"object": {"id": "ch_17"}}}`))
		fmt.Println(w.Code)
		connected = true
	}
	// Output:
	// 503
	// booked stripe:evt_17
	// 200
	// 200
}

// A payment of a wrong amount is refused each time that it arrives. The handler sees it
// once.
func ExampleReject() {
	verify, err := callback.VerifyStripe(secret)
	if err != nil {
		log.Fatal(err)
	}
	endpoint, err := callback.New(callback.Stripe(), newGuard(), verify, func(context.Context, *callback.Event) error {
		fmt.Println("looked at")
		return callback.Reject(errors.New("the order is over another amount"))
	}, nil)
	if err != nil {
		log.Fatal(err)
	}

	h := nethttp.Handler(endpoint)
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, fromStripe(`{"id": "evt_18", "type": "charge.succeeded", "data": {"object": {"id": "ch_18"}}}`))
		fmt.Println(w.Code)
	}
	// Output:
	// looked at
	// 400
	// 400
}

// Both secrets are accepted while one is being replaced.
func ExampleVerifyStripe() {
	verify, err := callback.VerifyStripe("whsec_the-next-one", secret)
	if err != nil {
		log.Fatal(err)
	}
	r := fromStripe(`{"id": "evt_17"}`)
	payload, err := verify(context.Background(), &callback.Delivery{Header: r.Header, Body: []byte(`{"id": "evt_17"}`)})
	fmt.Println(string(payload), err)
	_, err = verify(context.Background(), &callback.Delivery{Header: r.Header, Body: []byte(`{"id": "evt_18"}`)})
	fmt.Println(err)
	// Output:
	// {"id": "evt_17"} <nil>
	// no signature fits
}

func ExampleVerifyGitHub() {
	verify, err := callback.VerifyGitHub(secret)
	if err != nil {
		log.Fatal(err)
	}
	body := `{"zen": "Keep it logically awesome."}`
	_, err = verify(context.Background(), &callback.Delivery{
		Header: http.Header{"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(sign(body))}}, Body: []byte(body),
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleVerifyShopify() {
	verify, err := callback.VerifyShopify(secret)
	if err != nil {
		log.Fatal(err)
	}
	body := `{"id": 820982911946154508}`
	_, err = verify(context.Background(), &callback.Delivery{
		Header: http.Header{"X-Shopify-Hmac-Sha256": {base64.StdEncoding.EncodeToString(sign(body))}}, Body: []byte(body),
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleVerifyStandardWebhooks() {
	verify, err := callback.VerifyStandardWebhooks(secret)
	if err != nil {
		log.Fatal(err)
	}
	raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	now, body := strconv.FormatInt(time.Now().Unix(), 10), `{"type": "invoice.paid"}`
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte("msg_17." + now + "." + body))
	_, err = verify(context.Background(), &callback.Delivery{
		Header: http.Header{
			"Webhook-Id":        {"msg_17"},
			"Webhook-Timestamp": {now},
			"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
		},
		Body: []byte(body),
	})
	fmt.Println(err)
	// Output: <nil>
}

// If a provider differs a little, change a copy of its preset. Here a second account
// numbers its events independently.
func ExamplePreset() {
	second := callback.Stripe()
	second.Name = "stripe-eu"
	for _, p := range []callback.Preset{
		callback.Stripe(), second, callback.Alipay(), callback.WeChatPay(), callback.PayPal(),
		callback.Adyen(), callback.Square(), callback.GitHub(), callback.Shopify(), callback.StandardWebhooks("billing"),
	} {
		fmt.Println(p.Name, p.Done.Status, p.Later.Status, p.Deadline, p.Retention)
	}
	// Output:
	// stripe 200 503 8s 96h0m0s
	// stripe-eu 200 503 8s 96h0m0s
	// alipay 200 503 8s 48h0m0s
	// wechatpay 204 503 4s 48h0m0s
	// paypal 200 503 8s 96h0m0s
	// adyen 200 503 8s 744h0m0s
	// square 200 503 8s 96h0m0s
	// github 200 503 8s 96h0m0s
	// shopify 200 503 4s 96h0m0s
	// webhooks-billing 200 503 12s 96h0m0s
}
