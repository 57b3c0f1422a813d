package usecases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/nethttp"
)

// StripeCallbacks is the whole endpoint of Stripe's webhooks.
func StripeCallbacks(rdb script.Client, secret string, book callback.Handler) (gate.Gate, error) {
	guard, err := idempotency.New(rdb, "callbacks", &idempotency.Options{
		Retention: 4 * 24 * time.Hour, // Stripe sends again for three days
	})
	if err != nil {
		return nil, err
	}
	verify, err := callback.VerifyStripe(secret)
	if err != nil {
		return nil, err
	}
	return callback.New(callback.Stripe(), guard, verify, book, nil)
}

// AnyProvider has a guard that remembers for as long as the slowest of them sends
// again.
func AnyProvider(rdb script.Client) (*idempotency.Guard, error) {
	return idempotency.New(rdb, "callbacks", &idempotency.Options{
		Retention: 31 * 24 * time.Hour, // Adyen sends again for 30
	})
}

// AdyenCallbacks acknowledges what is rejected, so that it holds up nothing.
func AdyenCallbacks(guard *idempotency.Guard, verify callback.Verify, book callback.Handler) (gate.Gate, error) {
	return callback.New(callback.Adyen(), guard, verify, book, &callback.Options{
		AckRejected: true,
		OnError: func(ctx context.Context, err error) {
			slog.ErrorContext(ctx, "a callback failed", "provider", "adyen", "why", why(err)) // the text may name keys
		},
	})
}

// why is the kind of an error.
func why(err error) string {
	for _, kind := range []error{
		callback.ErrUnverified, callback.ErrMalformed, callback.ErrDeadline, gate.ErrBodyTooLarge, gate.ErrBodyBroken,
		idempotency.ErrInDoubt, idempotency.ErrLost, script.ErrNotExecuted, script.ErrMaybeExecuted,
	} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return "the handler failed, or something else"
}

// Drain waits until no handler runs and what they did is noted. A server's Shutdown
// does not wait for those that are past the deadline.
func Drain(ctx context.Context, guard *idempotency.Guard) error {
	for stats := guard.Stats(); stats.Running+stats.Concluding > 0; stats = guard.Stats() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// WeChatCombined is for payments of several orders at once.
func WeChatCombined() callback.Preset {
	p := callback.WeChatPay()
	p.Name = "wechatpay-combined"
	p.Items = func(_ *callback.Delivery, payload []byte) ([]callback.Item, error) {
		var n struct {
			Type     string `json:"event_type"`
			Resource struct {
				Merchant string `json:"combine_mchid"`
				Order    string `json:"combine_out_trade_no"`
			} `json:"resource"`
		}
		if err := json.Unmarshal(payload, &n); err != nil || n.Type == "" || n.Resource.Order == "" {
			return nil, callback.ErrMalformed
		}
		event := url.PathEscape(n.Type) + "/" + url.PathEscape(n.Resource.Merchant) + "/" + url.PathEscape(n.Resource.Order)
		return []callback.Item{{Transition: event, Order: n.Resource.Order, Payload: payload}}, nil
	}
	return p
}

// MountCallbacks mounts it on net/http and on Gin.
func MountCallbacks(endpoint gate.Gate, mux *http.ServeMux, r *gin.Engine) {
	mux.Handle("POST /callbacks/stripe", nethttp.Handler(endpoint))
	r.POST("/callbacks/stripe", ginlimit.Handler(endpoint))
}

// AlipayVerify has an SDK check the form's signature.
func AlipayVerify(verifySign func(url.Values) error) callback.Verify {
	return func(_ context.Context, d *callback.Delivery) ([]byte, error) {
		form, err := url.ParseQuery(string(d.Body))
		if err != nil {
			return nil, err
		}
		return d.Body, verifySign(form)
	}
}

// Notification is what WeChat Pay's SDK makes of a request.
type Notification struct {
	ID, EventType string
	Resource      struct{ Plaintext string }
}

// WeChatVerify has an SDK check the signature and open the resource.
func WeChatVerify(parse func(*http.Request) (*Notification, error)) callback.Verify {
	return func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
		r, err := http.NewRequestWithContext(ctx, d.Method, d.Path, bytes.NewReader(d.Body))
		if err != nil {
			return nil, err
		}
		r.Header = d.Header.Clone()
		n, err := parse(r)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{
			"id": n.ID, "event_type": n.EventType, "resource": json.RawMessage(n.Resource.Plaintext),
		})
	}
}

// AdyenVerify has an SDK check the signature of each item.
func AdyenVerify(valid func(item json.RawMessage) bool) callback.Verify {
	return func(_ context.Context, d *callback.Delivery) ([]byte, error) {
		var batch struct {
			Items []struct {
				Item json.RawMessage `json:"NotificationRequestItem"`
			} `json:"notificationItems"`
		}
		if err := json.Unmarshal(d.Body, &batch); err != nil {
			return nil, err
		}
		for _, i := range batch.Items {
			if !valid(i.Item) {
				return nil, errors.New("an item is not signed")
			}
		}
		return d.Body, nil
	}
}
