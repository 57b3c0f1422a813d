package usecases

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/nethttp"
)

// StripeCallbacks is the whole endpoint of Stripe's webhooks.
func StripeCallbacks(rdb script.Client, secret string, book callback.Handler) (*callback.Endpoint, error) {
	guard, err := idempotency.New(rdb, "callbacks", idempotency.Retry{}, &idempotency.Options{
		Retention: 4 * 24 * time.Hour, // Stripe sends again for three days
	})
	if err != nil {
		return nil, err
	}
	verify, err := callback.VerifyStripe(secret)
	if err != nil {
		return nil, err
	}
	return callback.New(callback.Stripe(), guard, verify, book, &callback.Options{OnError: report("stripe")})
}

// report logs what an endpoint has not acknowledged and what its handler has rejected, each
// with its event, so that people can look after it. The text of an error may name more than
// a log should have, so only its kind is logged.
func report(provider string) func(context.Context, error) {
	return func(ctx context.Context, err error) {
		var event, order string
		if of, ok := errors.AsType[*callback.EventError](err); ok {
			event, order = of.Key, of.Order
		}
		slog.ErrorContext(ctx, "a callback failed", "provider", provider, "event", event, "order", order, "why", why(err))
	}
}

// why is the kind of an error. ErrRejected and ErrInDoubt come first, since they may wrap
// any other.
func why(err error) string {
	for _, kind := range []error{
		callback.ErrRejected, idempotency.ErrInDoubt,
		callback.ErrUnverified, callback.ErrCannotVerify, callback.ErrMalformed, callback.ErrDeadline, callback.ErrAnotherDelivery, callback.ErrNoOrder,
		gate.ErrBodyTooLarge, gate.ErrBodyBroken, gate.ErrBodyConsumed,
		idempotency.ErrUnreadable, idempotency.ErrLost, idempotency.ErrConcluded, idempotency.ErrDropped,
		lock.ErrHeld, lock.ErrLost, lock.ErrExpired, lock.ErrTakenByOther,
		script.ErrNotExecuted, script.ErrMaybeExecuted, script.ErrConfiguration, script.ErrFailed,
	} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return "the handler failed, or something else"
}

// AnyProvider remembers events for as long as the slowest provider sends them again.
func AnyProvider(rdb script.Client) (*idempotency.Guard, error) {
	return idempotency.New(rdb, "callbacks", idempotency.Retry{}, &idempotency.Options{
		Retention: 31 * 24 * time.Hour, // Adyen sends again for 30
	})
}

// AdyenCallbacks acknowledges what is rejected, so that it holds up nothing.
func AdyenCallbacks(guard *idempotency.Guard, verify callback.Verify, book callback.Handler) (*callback.Endpoint, error) {
	return callback.New(callback.Adyen(), guard, verify, book, &callback.Options{AckRejected: true, OnError: report("adyen")})
}

// Stop ends a server. Its Shutdown does not wait for handlers that are past the deadline.
func Stop(ctx context.Context, server *http.Server, endpoint *callback.Endpoint) error {
	return errors.Join(server.Shutdown(ctx), endpoint.Drain(ctx))
}

// WeChatPayKeys are two keys by which WeChat Pay signs, until it signs by the public key
// alone.
func WeChatPayKeys(publicKey, certificate string) (*callback.WeChatPayKeys, error) {
	return callback.NewWeChatPayKeys(map[string]string{
		"PUB_KEY_ID_0114232134912410000000000000":  publicKey,
		"5157F09EFDC096DE15EBE81A47057A7232F1B8E1": certificate,
	})
}

// WeChatPayCallbacks proves and opens what WeChat Pay sends.
func WeChatPayCallbacks(guard *idempotency.Guard, keys *callback.WeChatPayKeys, apiV3Key string, book callback.Handler) (*callback.Endpoint, error) {
	signed, err := callback.VerifyWeChatPay(keys)
	if err != nil {
		return nil, err
	}
	verify, err := callback.OpenWeChatPay(signed, apiV3Key)
	if err != nil {
		return nil, err
	}
	return callback.New(callback.WeChatPay(), guard, verify, book, &callback.Options{OnError: report("wechatpay")})
}

// AlipayCallbacks proves what Alipay sends about an app, by Alipay's certificate for it.
func AlipayCallbacks(guard *idempotency.Guard, appID, cert string, book callback.Handler) (*callback.Endpoint, error) {
	verify, err := callback.VerifyAlipay(appID, cert)
	if err != nil {
		return nil, err
	}
	return callback.New(callback.Alipay(), guard, verify, book, &callback.Options{OnError: report("alipay")})
}

// WeChatTransfers is for transfers to users.
func WeChatTransfers() callback.Preset {
	p := callback.WeChatPay()
	p.Name = "wechatpay-transfers"
	p.Items = func(_ *callback.Delivery, payload []byte) ([]callback.Item, error) {
		var n struct {
			Type     string `json:"event_type"`
			Resource struct {
				Merchant string `json:"mch_id"`
				Bill     string `json:"out_bill_no"`
				State    string `json:"state"`
			} `json:"resource"`
		}
		if err := json.Unmarshal(payload, &n); err != nil || n.Type == "" || n.Resource.Bill == "" {
			return nil, callback.ErrMalformed
		}
		event := url.Values{"type": {n.Type}, "merchant": {n.Resource.Merchant}, "bill": {n.Resource.Bill}, "state": {n.Resource.State}}
		return []callback.Item{{Transition: event.Encode(), Order: n.Resource.Bill, Payload: payload}}, nil
	}
	return p
}

// MountCallbacks mounts it on net/http and on Gin.
func MountCallbacks(endpoint gate.Endpoint, mux *http.ServeMux, r *gin.Engine) {
	mux.Handle("POST /callbacks/stripe", nethttp.Handler(endpoint))
	r.POST("/callbacks/stripe", ginlimit.Handler(endpoint))
}

// PayPalCallbacks believes PayPal's API, and asks it about nothing that is not signed.
func PayPalCallbacks(guard *idempotency.Guard, webhookID string, api *http.Client, book callback.Handler) (*callback.Endpoint, error) {
	if webhookID == "" || strings.TrimSpace(webhookID) != webhookID { // every delivery would look forged
		return nil, errors.New("the webhook ID is empty or has white space around it: copy it from PayPal's dashboard")
	}
	verify := PayPalVerify(webhookID, NewPayPalCerts("api.paypal.com", nil, nil))
	verify = PayPalLookup(verify, api, "https://api-m.paypal.com")
	return callback.New(callback.PayPal(), guard, verify, book, &callback.Options{OnError: report("paypal")})
}
