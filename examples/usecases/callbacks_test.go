package usecases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
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
	errSDK := errors.New("not signed")
	const (
		form = "notify_id=1&out_trade_no=17&trade_status=TRADE_SUCCESS"
		item = `{"eventCode":"CAPTURE","pspReference":"1","success":"true","additionalData":{"hmacSignature":"AA=="}}`
	)
	for _, signed := range []bool{true, false} {
		alipay := AlipayVerify(func(_ context.Context, form url.Values) error {
			if form.Get("out_trade_no") != "17" || !signed {
				return errSDK
			}
			return nil
		})
		wechat := WeChatVerify(func(r *http.Request) (*Notification, error) {
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "sealed" || !signed {
				return nil, errSDK
			}
			n := &Notification{ID: "1", EventType: "TRANSACTION.SUCCESS"}
			n.Resource.Plaintext = `{"mchid":"19","out_trade_no":"17"}`
			return n, nil
		})
		adyen := AdyenVerify(func(i json.RawMessage) bool { return string(i) == item && signed })
		for _, c := range []struct {
			preset callback.Preset
			verify callback.Verify
			body   string
			done   int
			key    string
		}{
			{callback.Alipay(), alipay, form, 200, "alipay:1"},
			{callback.WeChatPay(), wechat, "sealed", 204, "wechatpay:TRANSACTION.SUCCESS/19/17/"},
			{callback.Adyen(), adyen, `{"notificationItems":[{"NotificationRequestItem":` + item + `}]}`, 200, "adyen:CAPTURE/1/true"},
		} {
			status, booked := deliver(t, c.preset, c.verify, c.body)
			if signed && (status != c.done || len(booked) != 1 || booked[0] != c.key) || !signed && (status != 401 || len(booked) != 0) {
				t.Errorf("%s, signed %t: got %d, %q, want %d, %q if it is signed, and 401 otherwise",
					c.preset.Name, signed, status, booked, c.done, c.key)
			}
		}
	}
}

// TestAdyenCallbacks has what is rejected acknowledged, and the log say nothing of
// its key or of the error's text.
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
		`{"notificationItems":[{"NotificationRequestItem":{"eventCode":"CAPTURE","pspReference":"psp1","success":"true","additionalData":{"hmacSignature":"AA=="}}}]}`)))
	if line := log.String(); w.Code != 200 || !strings.Contains(line, "the handler failed") ||
		strings.Contains(line, "costs less") || strings.Contains(line, "psp1") {
		t.Errorf("got %d with the log %s, want 200, and a line with neither the key nor the error's text",
			w.Code, line)
	}
	if err := Drain(t.Context(), guard); err != nil {
		t.Error(err)
	}
	if got, want := why(fmt.Errorf("%w: alice", callback.ErrUnverified)), callback.ErrUnverified.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	guard, err := AnyProvider(gatefake.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	run, err := guard.Begin(t.Context(), "1", "")
	if err != nil {
		t.Fatal(err)
	}
	claim := run.Claim
	ended, end := context.WithCancel(t.Context())
	end()
	if err := Drain(ended, guard); err == nil {
		t.Error("Drain beside a run: got no error, want one")
	}
	if err := errors.Join(claim.Conclude(t.Context(), idempotency.DoneWith(nil)), Drain(t.Context(), guard)); err != nil {
		t.Error(err)
	}
}

func TestWeChatCombined(t *testing.T) {
	t.Parallel()
	believed := func(_ context.Context, d *callback.Delivery) ([]byte, error) { return d.Body, nil }
	for body, want := range map[string]string{
		`{"event_type":"TRANSACTION.SUCCESS","resource":{"combine_mchid":"19","combine_out_trade_no":"17","sub_orders":[]}}`: "204 [wechatpay-combined:TRANSACTION.SUCCESS/19/17]",
		`{"event_type":"TRANSACTION.SUCCESS","resource":{"out_trade_no":"17"}}`:                                              "400 []",
	} {
		status, booked := deliver(t, WeChatCombined(), believed, body)
		if got := fmt.Sprint(status, booked); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	if status, booked := deliver(t, callback.WeChatPay(), believed,
		`{"event_type":"TRANSACTION.SUCCESS","resource":{"combine_out_trade_no":"17"}}`); status != 400 || booked != nil {
		t.Errorf("by the preset for single payments: got %d, %q, want 400 and nothing booked", status, booked)
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
