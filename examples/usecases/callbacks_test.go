package usecases

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/nethttp"
)

// deliver sends a body to an endpoint that believes what verify does, and returns
// the answer's status and the keys of what was booked.
func deliver(t *testing.T, p callback.Preset, verify callback.Verify, body string) (status int, booked []string) {
	t.Helper()
	guard, err := AnyProvider(gatefake.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := callback.New(p, guard, verify, func(_ context.Context, e *callback.Event) error {
		booked = append(booked, e.Key)
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mux, engine := http.NewServeMux(), gin.New()
	MountCallbacks(endpoint, mux, engine)
	for _, h := range []http.Handler{mux, engine} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/callbacks/stripe", strings.NewReader(body)))
		if status != 0 && w.Code != status {
			t.Errorf("got %d, and then %d, want the same of both frameworks", status, w.Code)
		}
		status = w.Code
	}
	return status, booked
}

func TestVerifyBySDK(t *testing.T) {
	t.Parallel()
	const item = `{"eventCode":"CAPTURE","pspReference":"1","success":"true","additionalData":{"hmacSignature":"AA=="}}`
	for _, signed := range []bool{true, false} {
		adyen := AdyenVerify(func(i json.RawMessage) bool { return string(i) == item && signed })
		status, booked := deliver(t, callback.Adyen(), adyen, `{"notificationItems":[{"NotificationRequestItem":`+item+`}]}`)
		if signed && (status != 200 || len(booked) != 1 || booked[0] != "adyen:CAPTURE/1/true") || !signed && (status != 401 || len(booked) != 0) {
			t.Errorf("signed %t: got %d, %q, want 200 and the item if it is signed, and 401 otherwise", signed, status, booked)
		}
	}
}

// TestAdyenCallbacks has what is rejected acknowledged, and the log say which event and order
// that is, and nothing of the error's text.
func TestAdyenCallbacks(t *testing.T) { //nolint:paralleltest // the log is the process's
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	guard, err := AnyProvider(gatefake.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := AdyenCallbacks(guard, AdyenVerify(func(json.RawMessage) bool { return true }),
		func(context.Context, *callback.Event) error {
			return callback.Reject(errors.New("it costs less"))
		})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	nethttp.Handler(endpoint).ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(
		`{"notificationItems":[{"NotificationRequestItem":{"eventCode":"CAPTURE","pspReference":"psp1","success":"true","merchantReference":"order17","additionalData":{"hmacSignature":"AA=="}}}]}`)))
	if line := log.String(); w.Code != 200 || !strings.Contains(line, callback.ErrRejected.Error()) || strings.Contains(line, "costs less") ||
		!strings.Contains(line, "event=adyen:CAPTURE/psp1/true order=order17") {
		t.Errorf("got %d with the log %s, want 200, and a line with the event, the order and %v, without the error's text",
			w.Code, line, callback.ErrRejected)
	}
	if err := Stop(t.Context(), new(http.Server), endpoint); err != nil {
		t.Error(err)
	}
}

// TestWhy names the kind of an error, and a failure of the handler only if there was one.
func TestWhy(t *testing.T) {
	t.Parallel()
	for _, kind := range []error{
		callback.ErrUnverified, gate.ErrBodyConsumed, script.ErrConfiguration, idempotency.ErrUnreadable, idempotency.ErrConcluded,
		idempotency.ErrDropped, lock.ErrHeld, lock.ErrExpired,
	} {
		if got, want := why(fmt.Errorf("%w: alice", kind)), kind.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got, want := why(callback.Reject(script.ErrNotExecuted)), callback.ErrRejected.Error(); got != want {
		t.Errorf("a rejection: got %q, want %q", got, want)
	}
	if got := why(errors.New("alice")); !strings.Contains(got, "the handler failed") || strings.Contains(got, "alice") {
		t.Errorf("a failure: got %q, want that the handler failed", got)
	}
}

func TestWeChatTransfers(t *testing.T) {
	t.Parallel()
	believed := func(_ context.Context, d *callback.Delivery) ([]byte, error) { return d.Body, nil }
	for body, want := range map[string]string{
		`{"event_type":"MCHTRANSFER.BILL.FINISHED","resource":{"mch_id":"19","out_bill_no":"17","state":"SUCCESS"}}`: "204 [wechatpay-transfers:bill=17&merchant=19&state=SUCCESS&type=MCHTRANSFER.BILL.FINISHED]",
		`{"event_type":"TRANSACTION.SUCCESS","resource":{"out_trade_no":"17"}}`:                                      "400 []",
	} {
		status, booked := deliver(t, WeChatTransfers(), believed, body)
		if got := fmt.Sprint(status, booked); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

// TestPaymentCallbacks refuse what is not signed.
func TestPaymentCallbacks(t *testing.T) {
	t.Parallel()
	guard, err := AnyProvider(gatefake.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	template := &x509.Certificate{SerialNumber: new(big.Int)}
	template.SerialNumber.SetString("5157F09EFDC096DE15EBE81A47057A7232F1B8E1", 16)
	if der, err = x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private); err != nil {
		t.Fatal(err)
	}
	keys, err := WeChatPayKeys(public, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	if err != nil {
		t.Fatal(err)
	}
	book := func(context.Context, *callback.Event) error { return errors.New("it was not signed") }
	wechat, err1 := WeChatPayCallbacks(guard, keys, strings.Repeat("k", 32), book)
	alipay, err2 := AlipayCallbacks(guard, "2021", public, book)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*callback.Endpoint{wechat, alipay} {
		w := httptest.NewRecorder()
		nethttp.Handler(e).ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader("out_trade_no=17")))
		if w.Code != 401 {
			t.Errorf("without a signature: got %d, want 401", w.Code)
		}
	}
	if _, err := WeChatPayCallbacks(guard, nil, "", book); err == nil {
		t.Error("no keys: got no error, want one")
	}
	if _, err := WeChatPayCallbacks(guard, keys, "", book); err == nil {
		t.Error("an empty API v3 key: got no error, want one")
	}
	if _, err := AlipayCallbacks(guard, "2021", "", book); err == nil {
		t.Error("an empty key: got no error, want one")
	}
}

func TestStripeCallbacks(t *testing.T) {
	t.Parallel()
	book := func(context.Context, *callback.Event) error { return nil }
	endpoint, err := StripeCallbacks(gatefake.Redis(t), "whsec_1", book)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	MountCallbacks(endpoint, mux, gin.New())
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/callbacks/stripe", strings.NewReader(`{}`)))
	if w.Code != 401 {
		t.Errorf("without a signature: got %d, want 401", w.Code)
	}
	if _, err := StripeCallbacks(gatefake.Redis(t), "", book); err == nil {
		t.Error("an empty secret: got no error, want one")
	}
}
