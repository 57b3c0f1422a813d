package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/ginlimit"
)

const behindGin kin = "deliveries behind Gin, over HTTP"

const (
	bareCallback = "the handler alone"
	neapCallback = "neap, and the same handler"
	callbackPath = "/callbacks/stripe"
	stripeSecret = "whsec_bench" //nolint:gosec // of no endpoint
	ginIs        = "github.com/gin-gonic/gin"
)

// callbackings receive the same deliveries with the same verification and
// handler.
func callbackings() []guarding {
	return []guarding{
		{
			name: bareCallback, what: "verifies Stripe's signature, reads the event and books it, as often as it comes", kind: floor,
			kin: behindGin, module: ginIs, open: openCallback(bareEndpoint, true),
		},
		{
			name: neapCallback, what: "callback.New with the Stripe preset, its verification and that handler", kind: ours,
			kin: behindGin, open: openCallback(neapEndpoint, false),
		},
	}
}

// books are where both book.
type books struct{ entries atomic.Int64 }

var errUnread = errors.New("the event is another than was sent")

func (b *books) book(_ context.Context, payload []byte) error {
	var event struct {
		ID   string `json:"id"`
		Data struct {
			Object struct {
				Amount   int64  `json:"amount"`
				Currency string `json:"currency"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(payload, &event); err != nil || event.ID == "" || event.Data.Object.Amount != 49900 {
		return errors.Join(errUnread, err)
	}
	b.entries.Add(1)
	return nil
}

func bareEndpoint(_ *redis.Client, verify callback.Verify, b *books) (gin.HandlerFunc, error) {
	return func(c *gin.Context) {
		body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, callback.DefaultMaxBody))
		if err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		payload, err := verify(c.Request.Context(), &callback.Delivery{Header: c.Request.Header, Body: body})
		if err != nil {
			c.Status(http.StatusUnauthorized)
			return
		}
		if err := b.book(c.Request.Context(), payload); err != nil {
			c.Status(http.StatusServiceUnavailable)
			return
		}
		c.Status(http.StatusOK)
	}, nil
}

func neapEndpoint(rdb *redis.Client, verify callback.Verify, b *books) (gin.HandlerFunc, error) {
	preset := callback.Stripe()
	guard, err := idempotency.New(rdb, "callbacks", &idempotency.Options{Budget: budget, Retention: preset.Keep})
	if err != nil {
		return nil, err
	}
	endpoint, err := callback.New(preset, guard, verify, func(ctx context.Context, e *callback.Event) error {
		return b.book(ctx, e.Payload)
	}, nil)
	if err != nil {
		return nil, err
	}
	return ginlimit.Handler(endpoint), nil
}

// wiring is how a contestant receives.
type wiring func(rdb *redis.Client, verify callback.Verify, b *books) (gin.HandlerFunc, error)

func openCallback(wire wiring, free bool) func(context.Context, env) (*guarded, error) {
	return func(ctx context.Context, e env) (*guarded, error) {
		verify, err := callback.VerifyStripe(stripeSecret)
		if err != nil {
			return nil, err
		}
		rdb, b := e.client(), &books{}
		receive, err := wire(rdb, verify, b)
		if err != nil {
			return nil, errors.Join(err, rdb.Close())
		}
		gin.SetMode(gin.ReleaseMode)
		engine := gin.New()
		engine.POST(callbackPath, receive)
		served, err := serve(ctx, engine, 64)
		if err != nil {
			return nil, errors.Join(err, rdb.Close())
		}
		send := func(_ context.Context, key string) error { return deliver(served, key) }
		return &guarded{
			first: send, replay: send, runs: b.entries.Load, free: free,
			close: func() error { return errors.Join(served.close(), rdb.Close()) },
		}, nil
	}
}

// deliver sends an event as Stripe does, with a signature of this second.
func deliver(to *served, event string) error {
	body := []byte(`{"id":"` + event + `","object":"event","type":"payment_intent.succeeded","created":1700000000,"livemode":false,` +
		`"data":{"object":{"id":"pi_` + event + `","object":"payment_intent","amount":49900,"currency":"eur","metadata":{"order":"1"}}}}`)
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(stripeSecret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return to.send(http.StatusOK, callbackPath, body, "Content-Type", "application/json",
		"Stripe-Signature", "t="+stamp+",v1="+hex.EncodeToString(mac.Sum(nil)))
}
