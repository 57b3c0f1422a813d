package neaptest_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/neaptest"
	"github.com/neap-go/neap/nethttp"
)

// testingT stands for the *testing.T that your test has, and that an example has not. It
// prints what fails.
type testingT struct {
	testing.TB
	ends []func()
}

func (*testingT) Helper()                           {}
func (*testingT) Context() context.Context          { return context.Background() }
func (*testingT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (*testingT) Fatal(args ...any)                 { log.Fatal(args...) }
func (t *testingT) Cleanup(f func())                { t.ends = append(t.ends, f) }
func (t *testingT) end() {
	for _, f := range t.ends {
		f()
	}
}

// logins is an instance of a service that allows 3 logins in ten minutes.
func logins(t testing.TB, rdb *redis.Client) http.Handler {
	limiter, err := limit.New(rdb, "logins", []limit.Policy{
		limit.SlidingLog{Limit: 3, Window: 10 * time.Minute},
	}, &limit.Options{Budget: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return nethttp.Middleware(gate.RateLimit(limiter, gate.ByIP(nil), nil))(http.NotFoundHandler())
}

// orders is an instance of a service that books an order once, and one at a time.
func orders(t testing.TB, rdb *redis.Client, booked *neaptest.Work) http.Handler {
	guard, err := idempotency.New(rdb, "orders", idempotency.Retry{}, &idempotency.Options{Budget: 10 * time.Second, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	once := gate.Idempotent(guard, gate.ByHeader("X-Account"), nil)
	return nethttp.Middleware(once)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer booked.Begin()()
		w.WriteHeader(http.StatusCreated)
	}))
}

// order is a request that a client sends again.
func order() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item": "tea"}`))
	r.Header.Set("X-Account", "ann")
	r.Header.Set("Idempotency-Key", "order-17")
	return r
}

// A test of two instances that share a limit. In a bubble of testing/synctest,
// time.Sleep(10 * time.Minute) would take no time, and end the window.
func ExampleNew() {
	t := &testingT{} // yours is func TestLogins(t *testing.T)
	defer t.end()

	server := neaptest.New(t)
	one, other := logins(t, server.Client()), logins(t, server.Client())
	for range 2 {
		for _, instance := range []http.Handler{one, other} {
			w := httptest.NewRecorder()
			instance.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/login", nil))
			fmt.Println(w.Code)
		}
	}
	// Output:
	// 404
	// 404
	// 404
	// 429
}

func ExampleAssertLimited() {
	t := &testingT{} // yours is func TestLogins(t *testing.T)
	defer t.end()

	server := neaptest.New(t)
	one, other := logins(t, server.Client()), logins(t, server.Client())
	login := func() *http.Request { return httptest.NewRequest(http.MethodPost, "/login", nil) }
	neaptest.AssertLimited(t, 3, login, neaptest.Handler(one), neaptest.Handler(other))
	// Output:
}

func ExampleAssertRunsOnce() {
	t := &testingT{} // yours is func TestOrders(t *testing.T)
	defer t.end()

	server := neaptest.New(t)
	var booked neaptest.Work
	one, other := orders(t, server.Client(), &booked), orders(t, server.Client(), &booked)
	neaptest.AssertRunsOnce(t, &booked, order, neaptest.Handler(one), neaptest.Handler(other))
	fmt.Println(booked.Runs())
	// Output: 1
}

func ExampleAssertOneAtATime() {
	t := &testingT{} // yours is func TestPayments(t *testing.T)
	defer t.end()

	server := neaptest.New(t)
	locker, err := lock.New(server.Client(), "orders", &lock.Options{Budget: 10 * time.Second, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var paid neaptest.Work
	one := nethttp.Middleware(gate.Exclusive(locker, gate.ByPath(), nil))
	pay := one(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { defer paid.Begin()() }))
	request := func() *http.Request { return httptest.NewRequest(http.MethodPost, "/orders/17/pay", nil) }
	neaptest.AssertOneAtATime(t, &paid, request, neaptest.Handler(pay))
	fmt.Println(paid.AtOnce())
	// Output: 1
}

// A test that fails for each route without a limit, and for each POST without a guard.
func ExampleRoutes() {
	t := &testingT{} // yours is func TestRoutes(t *testing.T)
	defer t.end()

	server := neaptest.New(t)
	var booked neaptest.Work
	mux := http.NewServeMux()
	mux.Handle("POST /login", logins(t, server.Client()))
	mux.Handle("POST /orders", orders(t, server.Client(), &booked))
	neaptest.Routes(t, server, neaptest.Handler(mux), &neaptest.RoutesOptions{
		Request:   func(r *http.Request) { r.Header.Set("X-Account", "ann") },
		Unguarded: []string{"POST /login"}, // a login may be repeated
		Unlimited: []string{"POST /orders"},
	}, "POST /login", "POST /orders")
	// Output:
}
