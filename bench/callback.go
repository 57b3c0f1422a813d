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

const (
	behindGin    = "Deliveries behind Gin, over HTTP"
	bareCallback = "the handler alone"
	neapCallback = "neap, and the same handler"
	callbackPath = "/callbacks/stripe"
	stripeSecret = "whsec_bench" //nolint:gosec // of no endpoint
)

// callbacks receive the same deliveries with the same verification and handler.
func callbacks() []contestant {
	return []contestant{
		{name: bareCallback, kind: floor, group: behindGin, guard: openCallback(bareEndpoint, true),
			what:   "verifies Stripe's signature, reads the event and books it, each time that it comes",
			module: "github.com/gin-gonic/gin"},
		{name: neapCallback, kind: ours, group: behindGin, guard: openCallback(neapEndpoint, false),
			what: "callback.New with the Stripe preset, its verification and that handler"},
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

func bareEndpoint(_ redis.UniversalClient, verify callback.Verify, b *books) (gin.HandlerFunc, error) {
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

func neapEndpoint(rdb redis.UniversalClient, verify callback.Verify, b *books) (gin.HandlerFunc, error) {
	preset := callback.Stripe()
	guard, err := idempotency.New(rdb, "callbacks", idempotency.Retry{}, &idempotency.Options{Budget: budget, Retention: preset.Retention})
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

// endpoint is how a contestant receives.
type endpoint func(rdb redis.UniversalClient, verify callback.Verify, b *books) (gin.HandlerFunc, error)

func openCallback(receives endpoint, unlocked bool) guardOpener {
	return func(ctx context.Context, e *env) (*guard, error) {
		verify, err := callback.VerifyStripe(stripeSecret)
		if err != nil {
			return nil, err
		}
		b := &books{}
		handler, err := receives(e.rdb, verify, b)
		if err != nil {
			return nil, err
		}
		gin.SetMode(gin.ReleaseMode)
		engine := gin.New()
		engine.POST(callbackPath, handler)
		client, err := e.serveHTTP(ctx, engine, 64)
		send := func(_ context.Context, key string) error { return deliver(client, key) }
		return &guard{first: send, replay: send, runs: b.entries.Load, unlocked: unlocked}, err
	}
}

// deliver sends an event as Stripe does, with a signature of this second.
func deliver(to client, event string) error {
	body := []byte(`{"id":"` + event + `","object":"event","type":"payment_intent.succeeded","created":1700000000,` +
		`"livemode":false,"data":{"object":{"id":"pi_` + event + `","object":"payment_intent","amount":49900,` +
		`"currency":"eur","metadata":{"order":"1"}}}}`)
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(stripeSecret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return to.post(callbackPath, body, must(http.StatusOK), "Content-Type", "application/json",
		"Stripe-Signature", "t="+stamp+",v1="+hex.EncodeToString(mac.Sum(nil)))
}

// targetDeliveries is what the project set itself for callbacks, a second.
const targetDeliveries = 1000

// callbacksReport is CALLBACKS.md.
func callbacksReport(r *results) report {
	bound := target{format: "%.0f", unit: " a second", direction: atLeast, bound: targetDeliveries}
	ratio := target{format: "%.2f", unit: " of the handler alone", direction: noTarget}
	all := append(r.trips(neapCallback, "delivery"), r.cellTargets("at once",
		cellTarget{"first deliveries", rate, first, neapCallback, "", bound},
		cellTarget{"replayed deliveries", rate, replayed, neapCallback, "", bound},
		cellTarget{"first deliveries", rate, first, neapCallback, bareCallback, ratio},
		cellTarget{"replayed deliveries", rate, replayed, neapCallback, bareCallback, ratio},
	)...)
	return report{
		title: "Payment callbacks with neap and without",
		prose: `
This page compares an endpoint of core/callback with the handler alone.

A delivery is a signed event of Stripe's to a handler that books it, behind Gin, over HTTP. A first delivery was never
sent before. A replayed one was sent and acknowledged before. Client and server share one core (GOMAXPROCS=1), and Redis
has the rest.

` + r.inRounds() + `Ratios are to the handler alone, in the same round. If a handler runs more or less often than it must,
the run ends with an error.`,
		sections: []section{
			targets(all),
			r.kept(behindGin, `
Redis CPU is that of the whole server (INFO cpu), with one caller. Commands are those that the endpoint sends and waits
for. Bytes are MEMORY USAGE of one event that is done, including its key.`),
			r.who(""),
		},
	}
}
