package callback_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

const endpointSecret = "the secret of the endpoint"

// signatureOf and proven stand for what a provider's SDK does by the provider's own rules:
// the pages in docs/callbacks name the function of an SDK, and say what you must check
// yourself.
func signatureOf(text string) string {
	mac := hmac.New(sha256.New, []byte(endpointSecret))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func proven(by, text string) error {
	if !hmac.Equal([]byte(by), []byte(signatureOf(text))) {
		return errors.New("the signature does not fit")
	}
	return nil
}

// receive makes an endpoint, sends it a delivery, and prints the events that it finds and
// its answer.
func receive(p callback.Preset, verify callback.Verify, body string, header http.Header) {
	rdb := redistest.Embedded() // stands for your go-redis client
	guard, err := idempotency.New(rdb, "callbacks", idempotency.Retry{}, &idempotency.Options{Retention: p.Retention, Budget: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	book := func(_ context.Context, e *callback.Event) error {
		fmt.Println("order", e.Order, "key", e.Key)
		return nil // book it under a unique constraint on e.Key
	}
	endpoint, err := callback.New(p, guard, verify, book, nil)
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/callbacks/"+p.Name, strings.NewReader(body))
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	nethttp.Handler(endpoint).ServeHTTP(w, r)
	fmt.Println(strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Body)))
}

func ExampleSquare() {
	verify := func(_ context.Context, d *callback.Delivery) ([]byte, error) {
		by := d.Header.Get("X-Square-Hmacsha256-Signature")
		if len(d.Body) == 0 || by == "" {
			return nil, errors.New("nothing is signed") // the SDK takes an empty body for signed
		}
		return d.Body, proven(by, string(d.Body)) // Webhooks.VerifySignature of square-go-sdk
	}
	body := `{"event_id": "event-17", "type": "payment.updated", "data": {"id": "payment-17"}}`
	receive(callback.Square(), verify, body, http.Header{"X-Square-Hmacsha256-Signature": {signatureOf(body)}})
	receive(callback.Square(), verify, body, http.Header{"X-Square-Hmacsha256-Signature": {"forged"}})
	// Output:
	// order payment-17 key square:event-17
	// 200
	// 401
}

func ExamplePayPal() {
	verify := func(_ context.Context, d *callback.Delivery) ([]byte, error) {
		// By the certificate that the delivery names: see examples/usecases/paypal.go.
		return d.Body, proven(d.Header.Get("Paypal-Transmission-Sig"), string(d.Body))
	}
	body := `{"id": "WH-17", "event_type": "PAYMENT.CAPTURE.COMPLETED", "resource": {"id": "capture-17"}}`
	receive(callback.PayPal(), verify, body, http.Header{"Paypal-Transmission-Sig": {signatureOf(body)}})
	// Output:
	// order capture-17 key paypal:WH-17
	// 200
}

// A delivery of Adyen may have several items. Each is signed by itself.
func ExampleAdyen() {
	verify := func(_ context.Context, d *callback.Delivery) ([]byte, error) {
		var batch struct {
			Items []struct {
				Item struct {
					PspReference   string
					AdditionalData struct{ HMACSignature string }
				} `json:"NotificationRequestItem"`
			} `json:"notificationItems"`
		}
		if err := json.Unmarshal(d.Body, &batch); err != nil {
			return nil, err
		}
		for _, i := range batch.Items { // hmacvalidator.ValidateHmac of adyen-go-api-library, for eight fields
			if err := proven(i.Item.AdditionalData.HMACSignature, i.Item.PspReference); err != nil {
				return nil, err
			}
		}
		if len(batch.Items) == 0 {
			return nil, errors.New("nothing is signed")
		}
		return d.Body, nil
	}
	body := `{"notificationItems": [{"NotificationRequestItem": {
		"eventCode": "AUTHORISATION", "success": "true", "pspReference": "psp-17", "merchantReference": "order-17",
		"additionalData": {"hmacSignature": "` + signatureOf("psp-17") + `"}}}]}`
	receive(callback.Adyen(), verify, body, nil)
	// Output:
	// order order-17 key adyen:AUTHORISATION/psp-17/true
	// 200 [accepted]
}

// The key of an event is the hash of its body, which GitHub signs.
func ExampleGitHub() {
	verify, err := callback.VerifyGitHub(endpointSecret)
	if err != nil {
		log.Fatal(err)
	}
	body := `{"repository": {"full_name": "octo/shop"}}`
	receive(callback.GitHub(), verify, body, http.Header{
		"X-Github-Delivery": {"delivery-17"}, "X-Hub-Signature-256": {"sha256=" + signatureOf(body)},
	})
	// Output:
	// order octo/shop key github:sha256=Zm78_CJJGebD89cvRhc_C4AZEJQhPKWevBReRA80lY4
	// 200
}

// The key of an event is the hash of its body, which Shopify signs.
func ExampleShopify() {
	verify, err := callback.VerifyShopify(endpointSecret)
	if err != nil {
		log.Fatal(err)
	}
	body := `{"id": 820982911946154508, "financial_status": "paid"}`
	mac := hmac.New(sha256.New, []byte(endpointSecret))
	mac.Write([]byte(body))
	receive(callback.Shopify(), verify, body, http.Header{
		"X-Shopify-Topic": {"orders/paid"}, "X-Shopify-Event-Id": {"event-17"},
		"X-Shopify-Hmac-Sha256": {base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	})
	// Output:
	// order 820982911946154508 key shopify:sha256=0bMxpPkHnUKjezvTx6vvOUQ1QUmgV00WUpaEa8Lr_DE
	// 200
}
