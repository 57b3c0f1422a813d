package gatetest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
)

// wrapping is middleware that puts the request's context into one of its own.
func wrapping(x Exchange, next func() error) error {
	ctx, stop := context.WithCancel(context.WithValue(x.Context(), contextKey("wrapping"), "1"))
	defer stop()
	x.SetContext(ctx)
	return next()
}

// outerRefunds: what gates outside took of a request that one further in
// refuses is given back before the refusal is sent, however they are mounted.
func outerRefunds(t *testing.T, d Driver) {
	limited := func(l *limit.Limiter) gate.Gate { return gate.RateLimit(l, everyone, nil) }
	for name, mount := range map[string]func(all, group, route gate.Gate) App{
		"Apart": func(all, group, route gate.Gate) App {
			return App{Gates: []gate.Gate{all, group}, Routes: []Route{{
				Around: []Middleware{wrapping}, Gates: []gate.Gate{route},
			}}}
		},
		"Route": func(all, group, route gate.Gate) App {
			return App{Routes: []Route{{Gates: []gate.Gate{all, group, route}}}}
		},
		"Chain": func(all, group, route gate.Gate) App {
			return App{Routes: []Route{{Gates: []gate.Gate{gate.Chain(all, group, route)}}}}
		},
		"Chains": func(all, group, route gate.Gate) App {
			return App{Gates: []gate.Gate{gate.Chain(all)}, Routes: []Route{{
				Around: []Middleware{wrapping}, Gates: []gate.Gate{gate.Chain(group, route)},
			}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, group, route := perHour(t, "all", 100), perHour(t, "group", 100), perHour(t, "route", 2)
			app := mount(limited(all),
				gate.RateLimit(group, everyone, &gate.RateLimitOptions{
					Count: func(int) bool { return true },
					Cost:  func(gate.Request) (int64, error) { return 3, nil },
				}),
				gate.RateLimit(route, d.Key("X-Api-Key"), nil))
			app.Routes[0].Method, app.Routes[0].Pattern, app.Routes[0].Handler = "GET", "/detail", say(429, "the handler's own")
			c := dial(t, d.Serve(t, app))
			for i, ask := range []struct {
				lines  []string
				status int
				body   string
				used   int64
			}{
				{[]string{"X-Api-Key: a"}, 429, "the handler's own", 1},
				{nil, 400, "", 1},
				{[]string{"X-Api-Key: a"}, 429, "the handler's own", 2},
				{[]string{"X-Api-Key: a"}, 429, "", 2},
				{[]string{"X-Api-Key: a"}, 429, "", 2},
				{nil, 400, "", 2},
				{[]string{"X-Api-Key: b"}, 429, "the handler's own", 3},
			} {
				a := c.do("GET", "/detail", ask.lines...)
				if a.status != ask.status || ask.body != "" && a.body != ask.body || ask.body == "" && a.body == "the handler's own" {
					t.Errorf("request %d: got %d %q, want %d %q", i, a.status, a.body, ask.status, ask.body)
				}
				if x, y := used(t, all), used(t, group); x != ask.used || y != 3*ask.used {
					t.Errorf("request %d: %d and %d used, want %d and %d", i, x, y, ask.used, 3*ask.used)
				}
			}
		})
	}
}

// outerRefundsConcurrently: of requests beside each other, those that were
// refused are given back and no others.
func outerRefundsConcurrently(t *testing.T, d Driver) {
	const clients, requests, admitted = 16, 10, 23
	all, route := perHour(t, "all", 1000), perHour(t, "route", admitted)
	var handled atomic.Int64
	address := d.Serve(t, App{
		Gates: []gate.Gate{gate.RateLimit(all, everyone, nil)},
		Routes: []Route{{
			Method: "GET", Pattern: "/users/{id}", Gates: []gate.Gate{gate.RateLimit(route, everyone, nil)},
			Around: []Middleware{wrapping},
			Handler: func(x Exchange) error {
				handled.Add(1)
				return say(200, "ok")(x)
			},
		}},
	})
	var wg sync.WaitGroup
	for range clients {
		c := dial(t, address)
		wg.Go(func() {
			for range requests {
				if a, err := c.try("GET", "/users/7", ""); err != nil || a.status != 200 && a.status != 429 {
					t.Errorf("got %d, %v", a.status, err)
				}
			}
		})
	}
	wg.Wait()
	if n := handled.Load(); n != admitted || used(t, all) != admitted {
		t.Errorf("%d handled, and %d used outside, want %d", n, used(t, all), admitted)
	}
}

// outerPanics: a gate that panics refuses nothing.
func outerPanics(t *testing.T, d Driver) {
	all := perHour(t, "all", 10)
	address := d.Serve(t, App{
		Gates: []gate.Gate{gate.RateLimit(all, everyone, nil)},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Handler: never(t),
			Gates: []gate.Gate{enter(func(gate.Request) gate.Pass { panic("gatetest: a gate panics") })},
		}},
	})
	if a := get(t, address, "/detail"); a.status != 500 || used(t, all) != 1 {
		t.Errorf("got %d, and %d used", a.status, used(t, all))
	}
}
