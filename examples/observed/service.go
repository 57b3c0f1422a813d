package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/nethttp"
)

// The items of the sale.
const (
	phone = "phone"
	socks = "socks" // whose record somebody edits
	units = 1_000_000
)

// lease is how long a lock outlives a process that is gone, or a Redis that is away; a report takes longer.
const (
	lease        = 5 * time.Second
	reportTakes  = 15 * time.Second
	paymentTakes = 100 * time.Millisecond // a sale too
)

type service struct {
	limiter *limit.Limiter
	running *inflight.Limiter
	locker  *lock.Locker
	guard   *idempotency.Guard
	sale    *stock.Stock
}

func newService(ctx context.Context, rdb script.Client) (*service, error) {
	var s service
	var errs [5]error
	s.limiter, errs[0] = limit.New(rdb, "api", []limit.Policy{
		limit.TokenBucket{Name: "burst", Rate: 20, Per: time.Second, Burst: 20},
		limit.FixedWindow{Name: "minute", Limit: 300, Window: time.Minute},
		limit.Shadow(limit.FixedWindow{Name: "hourly", Limit: 200, Window: time.Hour}),
	}, nil)
	s.locker, errs[1] = lock.New(rdb, "reports", &lock.Options{Lease: lease})
	s.guard, errs[2] = idempotency.New(rdb, "payments", idempotency.Reject{}, nil)
	s.sale, errs[3] = stock.New(rdb, "sale", nil)
	s.running, errs[4] = inflight.New(rdb, "running", 2, nil)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for _, item := range []string{phone, socks} {
		if _, err := s.sale.Open(ctx, item, units, time.Now().Add(24*time.Hour)); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

func (s *service) routes(mux *http.ServeMux) {
	user := gate.ByHeader("X-User")
	limited := nethttp.Middleware(gate.RateLimit(s.limiter, user, nil))
	running := nethttp.Middleware(gate.Concurrency(s.running, gate.ByParam("name"), nil))
	alone := nethttp.Middleware(gate.Exclusive(s.locker, gate.ByParam("name"), nil))
	once := nethttp.Middleware(gate.Idempotent(s.guard, user, nil))
	reserved := nethttp.Middleware(gate.Reserve(s.sale, gate.ByParam("item"), user, nil))
	mux.Handle("GET /hello", limited(http.HandlerFunc(hello)))
	mux.Handle("POST /reports/{name}", running(alone(http.HandlerFunc(report))))
	mux.Handle("POST /payments", once(http.HandlerFunc(pay)))
	mux.Handle("POST /sale/{item}", reserved(http.HandlerFunc(sell)))
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

// report takes long, and ends early if its lock is lost: another may make it then.
func report(w http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
		http.Error(w, "not finished", http.StatusServiceUnavailable)
	case <-time.After(reportTakes):
		fmt.Fprintln(w, "finished")
	}
}

// pay does not know what became of a payment if its provider says nothing: a 5xx leaves it in doubt.
func pay(w http.ResponseWriter, r *http.Request) {
	<-time.After(paymentTakes)
	if r.Header.Get("X-Provider") == "silent" {
		http.Error(w, "no answer from the provider", http.StatusGatewayTimeout)
		return
	}
	fmt.Fprintln(w, "paid")
}

func sell(w http.ResponseWriter, _ *http.Request) {
	<-time.After(paymentTakes)
	fmt.Fprintln(w, "sold")
}
