package neaptest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/lua"
	"github.com/neap-go/neap/nethttp"
)

// audited are routes with each kind of gate.
func audited(t *testing.T, r *Redis) Send {
	t.Helper()
	rdb := r.Client()
	limited := nethttp.Middleware(gate.RateLimit(limiter(t, rdb, 100, store.FailClosed), everybody, nil))
	many := must(limit.New(rdb, "many", []limit.Policy{limit.FixedWindow{Limit: 9, Window: time.Minute}, limit.TokenBucket{Rate: 9, Per: time.Second, Burst: 9}}, nil))(t)
	slots := must(inflight.New(rdb, "slots", 2, nil))(t)
	must(guard(t, rdb).Begin(t.Context(), "before", ""))(t) // what was asked before counts for no route
	guarded := nethttp.Middleware(gate.Idempotent(guard(t, rdb), gate.ByHeader("X-Account"), nil))
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	verify := func(_ context.Context, d *callback.Delivery) ([]byte, error) {
		if d.Header.Get("Stripe-Signature") == "" {
			return nil, errors.New("unsigned")
		}
		return d.Body, nil
	}
	keeping := must(idempotency.New(rdb, "callbacks", idempotency.Retry{}, &idempotency.Options{Retention: callback.Stripe().Retention}))(t)
	stripe := must(callback.New(callback.Stripe(), keeping, verify, func(context.Context, *callback.Event) error { return nil }, nil))(t)

	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", limited(guarded(ok)))
	mux.Handle("PATCH /open/{id}/", limited(ok))
	mux.Handle("GET /items/{rest...}", nethttp.Middleware(gate.RateLimit(many, everybody, nil))(ok))
	mux.Handle("GET /slow/{$}", nethttp.Middleware(gate.Concurrency(slots, everybody, nil))(ok))
	mux.Handle("GET /bare", ok)
	mux.Handle("PUT /put", limited(ok))
	mux.Handle("POST /callbacks/stripe", nethttp.Handler(stripe))
	mux.Handle("GET admin.example/stats", limited(ok))
	return Handler(mux)
}

// signed adds credentials.
func signed(r *http.Request) {
	r.Header.Set("X-Account", "ann")
	if r.URL.Path == "/callbacks/stripe" {
		r.Header.Set("Stripe-Signature", "t=1,v1=00")
		r.Body = io.NopCloser(strings.NewReader(`{"id":"evt_1","type":"charge.succeeded","data":{"object":{"id":"ch_1"}}}`))
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	all := []string{"POST /orders/{id}", "PATCH /open/{id}/", "GET /items/{rest...}", "GET /slow/{$}", "GET /bare", "PUT /put", "GET admin.example/stats"}
	for name, c := range map[string]struct {
		opts   *RoutesOptions
		routes []string
		want   []string
	}{
		"all is listed": {
			&RoutesOptions{Request: signed, Unguarded: []string{"PATCH /open/{id}/"}, Unlimited: []string{"GET /bare"}}, all, nil,
		},
		"nothing is listed": {
			&RoutesOptions{Request: signed}, all,
			[]string{
				`PATCH /open/{id}/: no guard was asked, and the answer was 200 "", want a guard, or the route in Unguarded`,
				`GET /bare: no limit was asked, and the answer was 200 "", want a limit, or the route in Unlimited`,
			},
		},
		"no credentials": {
			nil, all[:1], []string{"POST /orders/{id}: no guard was asked, and the answer was 401"},
		},
		"listed without need": {
			&RoutesOptions{Request: signed, Unguarded: all[:1], Unlimited: []string{"GET /slow/{$}"}}, []string{all[0], all[3]},
			[]string{"POST /orders/{id}: a guard was asked, want the route not to be in Unguarded any more",
				"GET /slow/{$}: a limit was asked, want the route not to be in Unlimited any more"},
		},
		"a method without need": {
			&RoutesOptions{Unguarded: []string{"PUT /put"}}, []string{"PUT /put"},
			[]string{"PUT /put: a PUT needs no guard, want the route not to be in Unguarded"},
		},
		"not among the routes": {
			&RoutesOptions{Unlimited: []string{"GET /gone"}}, []string{"PUT /put"},
			[]string{"got GET /gone in Unlimited and not among the routes"},
		},
		"not there": {
			nil, []string{"DELETE /orders/:id"}, []string{"DELETE /orders/:id: no limit was asked, and the answer was 405"},
		},
		"a signed callback": {
			&RoutesOptions{Request: signed, Unlimited: []string{"POST /callbacks/stripe"}},
			[]string{"POST /callbacks/stripe"}, nil,
		},
		"an unsigned callback": {
			&RoutesOptions{Unlimited: []string{"POST /callbacks/stripe"}}, []string{"POST /callbacks/stripe"},
			[]string{"POST /callbacks/stripe: no guard was asked, and the answer was 401"},
		},
		"no route":        {nil, nil, []string{"got no route, want some"}},
		"no path":         {nil, []string{"POST"}, []string{`got the route "POST", want a method and a path`}},
		"no method":       {nil, []string{"/orders"}, []string{`got the route "/orders", want a method and a path`}},
		"a relative path": {nil, []string{"POST orders"}, []string{`got the route "POST orders", want a method and a path`}},
		"a wrong path":    {nil, []string{"GET /%zz"}, []string{`got the route "GET /%zz", want a method and a path`}},
		"a wrong method":  {nil, []string{"G@T /"}, []string{`got the route "G@T /", want a method and a path`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, r *Redis) {
				rec := &recorder{TB: t}
				Routes(rec, r, audited(t, r), c.opts, c.routes...)
				rec.says(t, c.want...)
			})
		})
	}
}

func TestFilled(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"orders/{id}": "orders/1", "files/{path...}": "files/1", "shop/{$}": "shop/", ":a/b/:c?": "1/b/1", "files/*path": "files/1",
		"*": "1", "+": "1", "": "", "a/": "a/",
		"flights/:from-:to": "flights/1-1", ":name.:ext?": "1.1", ":id<int>/:on<regex(^[0-9]{2}$)>": "1/1", `:id\:cancel`: "1:cancel",
		"{from}-{to}": "1-1", "{id:[0-9]{2}}": "1", "orders:batch": "orders:batch", "*.js": "1.js", ":user-id": "1-id",
	} {
		if got := filled(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestEachLimitAndGuardIsKnown has the audit know every script that decides.
func TestEachLimitAndGuardIsKnown(t *testing.T) {
	t.Parallel()
	var known []string
	for _, name := range names() {
		if guards(name) || limits(name) {
			known = append(known, name)
		}
	}
	want := []string{"guard_begin.lua", "inflight_acquire.lua"}
	for _, kind := range lua.Kinds {
		want = append(want, lua.Lone(kind).Name)
	}
	slices.Sort(known)
	slices.Sort(want)
	if !slices.Equal(known, want) {
		t.Errorf("got the scripts %q, want %q", known, want)
	}
}
