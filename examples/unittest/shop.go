// Package unittest shows how to test what uses neap, without a server: the routes of a shop
// take the Redis client, and a test gives each instance one that reaches an embedded Redis.
package unittest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/nethttp"
)

// Do is what the shop does in its database: "order", "pack" or "payment".
type Do func(ctx context.Context, what string) error

// Routes are those of one instance of the shop. Logins are limited by user name, an order is booked once, one
// process packs an order at a time, and an event of Stripe counts once.
func Routes(rdb redis.UniversalClient, secret string, do Do) (http.Handler, error) {
	logins, err1 := limit.New(rdb, "logins", []limit.Policy{limit.SlidingLog{Limit: 3, Window: 10 * time.Minute}}, nil)
	calls, err2 := limit.New(rdb, "calls", []limit.Policy{limit.TokenBucket{Rate: 100, Per: time.Second, Burst: 100}}, nil)
	orders, err3 := idempotency.New(rdb, "orders", idempotency.Retry{}, nil)
	packing, err4 := lock.New(rdb, "packing", nil)
	events, err5 := idempotency.New(rdb, "events", idempotency.Retry{}, &idempotency.Options{Retention: callback.Stripe().Retention})
	verify, err6 := callback.VerifyStripe(secret)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	stripe, err := callback.New(callback.Stripe(), events, verify, func(ctx context.Context, _ *callback.Event) error {
		return do(ctx, "payment")
	}, nil)
	if err != nil {
		return nil, err
	}

	login := nethttp.Middleware(gate.RateLimit(logins, gate.ByForm("user", nil), nil))
	limited := nethttp.Middleware(gate.RateLimit(calls, gate.ByHeader("X-Account"), nil))
	once := nethttp.Middleware(gate.Idempotent(orders, gate.ByHeader("X-Account"), nil))
	alone := nethttp.Middleware(gate.Exclusive(packing, gate.ByParam("id"), nil))
	mux := http.NewServeMux()
	mux.Handle("POST /login", login(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})))
	mux.Handle("POST /orders", limited(once(does(do, "order", http.StatusCreated))))
	mux.Handle("PUT /orders/{id}/parcel", limited(alone(does(do, "pack", http.StatusNoContent))))
	mux.Handle("POST /callbacks/stripe", nethttp.Handler(stripe))
	return mux, nil
}

// does answers with the status when the database has done its part, and with 500 when it has not.
func does(do Do, what string, status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := do(r.Context(), what); err != nil {
			http.Error(w, "not done", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(status)
	})
}
