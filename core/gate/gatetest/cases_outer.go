package gatetest

import (
	"context"
	"net/http"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// wrapping is middleware that puts the request's context into one of its own.
func wrapping(x Exchange, next func() error) error {
	ctx, stop := context.WithCancel(context.WithValue(x.Context(), contextKey("wrapping"), "1"))
	defer stop()
	x.SetContext(ctx)
	return next()
}

// outerCounts: a gate outside counts what it admits. So it limits a flood that gates
// further in refuse, whatever their answer is.
func outerCounts(t *testing.T, d Driver) {
	const admitted, flood = 4, 10
	for status, inner := range map[int]func(t *testing.T) gate.Gate{
		400: func(t *testing.T) gate.Gate {
			return gate.RateLimit(perHour(t, "inner", 1), gate.ByHeader("X-None"), nil)
		},
		409: func(t *testing.T) gate.Gate {
			l := newLocker(t, d)
			held, err := l.Try(t.Context(), "everyone")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if n := l.Stats().Held; n != admitted {
					t.Errorf("a flood of %d asked for %d locks, want %d", flood, n, admitted)
				}
				_ = held.Release(context.Background())
			})
			return gate.Exclusive(l, everyone, nil)
		},
		413: func(t *testing.T) gate.Gate {
			return gate.Idempotent(newGuard(t, d, idempotency.Options{}), everyone, &gate.IdempotentOptions{MaxBody: 1})
		},
		422: func(t *testing.T) gate.Gate {
			g := newGuard(t, d, idempotency.Options{})
			run, err := g.Begin(t.Context(), gate.IdempotencyScope("everyone", "POST", "/orders", "17"), "another")
			if err != nil {
				t.Fatal(err)
			}
			claim := run.Claim
			if err := claim.Conclude(t.Context(), idempotency.DoneWithout()); err != nil {
				t.Fatal(err)
			}
			return gate.Idempotent(g, everyone, nil)
		},
		429: func(t *testing.T) gate.Gate {
			l := perHour(t, "inner", 1)
			if _, err := l.Take(t.Context(), "everyone"); err != nil {
				t.Fatal(err)
			}
			return gate.RateLimit(l, everyone, nil)
		},
	} {
		for name, mount := range map[string]func(outer, inner gate.Gate) App{
			"Apart": func(outer, inner gate.Gate) App {
				return App{Gates: []gate.Gate{outer}, Routes: []Route{{Around: []Middleware{wrapping}, Gates: []gate.Gate{inner}}}}
			},
			"Chain": func(outer, inner gate.Gate) App {
				return App{Routes: []Route{{Gates: []gate.Gate{gate.Chain(outer, inner)}}}}
			},
		} {
			t.Run(http.StatusText(status)+"/"+name, func(t *testing.T) {
				all := perHour(t, "all", admitted)
				app := mount(gate.RateLimit(all, everyone, &gate.RateLimitOptions{Render: func(gate.Denial) gate.Reply {
					return gate.Reply{Body: []byte("outside")}
				}}), inner(t))
				app.Routes[0].Method, app.Routes[0].Pattern, app.Routes[0].Handler = "POST", "/orders", never(t)
				address := d.Serve(t, app)
				for i := range flood {
					a := dial(t, address).post("/orders", "tea", keyed("17")...)
					if outside := a.status == 429 && a.body == "outside"; outside != (i >= admitted) || !outside && a.status != status {
						t.Errorf("request %d: got %d %q, want %d %d times and then 429 from outside",
							i, a.status, a.body, status, admitted)
					}
				}
				if got := used(t, all); got != admitted {
					t.Errorf("%d used outside, want %d", got, admitted)
				}
			})
		}
	}
}

// outerPanics: an admitted request also counts if a gate further in panics.
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
		t.Errorf("got %d, and %d used, want 500 and 1", a.status, used(t, all))
	}
}
