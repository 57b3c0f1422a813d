package gatetest

import (
	"context"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

type contextKey string

// adding is a gate that gives its handler a context with value under key, in addition to
// what the request's own context has. It reports what it found there under found.
func adding(key, value contextKey, found func(any)) gate.Gate {
	return enter(func(q gate.Request) gate.Pass {
		found(q.Value(key))
		return gate.Pass{Context: context.WithValue(q.Context(), key, value)}
	})
}

// watching is middleware that fails the test unless the request's context has want under
// key after the inner handlers, and is the same as before them.
func watching(t testing.TB, key contextKey, want any) Middleware {
	return func(x Exchange, next func() error) error {
		before := x.Context()
		if got := before.Value(key); got != want {
			t.Errorf("middleware found %v under %q, want %v", got, key, want)
		}
		defer func() {
			if x.Context() != before {
				t.Errorf("the context under %q was not restored, want the one from before", key)
			}
		}()
		return next()
	}
}

func contexts(t *testing.T, d Driver) {
	finding := func(want any) func(any) {
		return func(got any) {
			if got != want {
				t.Errorf("a gate found %v, want %v", got, want)
			}
		}
	}
	const key contextKey = "key"
	gates := []gate.Gate{adding(key, "2", finding(contextKey("1"))), adding(key, "3", finding(contextKey("2")))}
	setting := func(x Exchange, next func() error) error {
		x.SetContext(context.WithValue(x.Context(), key, contextKey("0")))
		return next()
	}
	chain := gate.Chain(gates...)
	address := d.Serve(t, App{
		Around: []Middleware{setting, watching(t, key, contextKey("0"))},
		Gates:  []gate.Gate{adding(key, "1", finding(contextKey("0")))},
		Routes: []Route{
			{
				Method: "POST", Pattern: "/users/{id}", Gates: gates,
				Around: []Middleware{watching(t, key, contextKey("1"))},
				Handler: func(x Exchange) error {
					if got := x.Context().Value(key); got != contextKey("3") {
						t.Errorf("the handler found %v, want 3", got)
					}
					body, err := x.Body()
					if err != nil {
						t.Error(err)
					}
					return say(200, x.Param("id")+" "+string(body))(x)
				},
			},
			{
				Method: "GET", Pattern: "/panic", Gates: []gate.Gate{chain},
				Around:  []Middleware{watching(t, key, contextKey("1"))},
				Handler: func(Exchange) error { panic("gatetest: a handler panics") },
			},
		},
	})
	dial(t, address).post("/users/7", "body").is(t, 200, "7 body", "Content-Type: "+plain)
	if a := get(t, address, "/panic"); a.status != 500 {
		t.Errorf("a panic: got %d, want 500", a.status)
	}
}

// values: a gate finds what middleware stored, wherever the framework keeps it.
func values(t *testing.T, d Driver) {
	const key contextKey = "in the context"
	q := make(chan [3]any, 16)
	address := d.Serve(t, App{
		Around: []Middleware{func(x Exchange, next func() error) error {
			x.SetContext(context.WithValue(x.Context(), key, "from the context"))
			x.SetValue("user", "from the store")
			return next()
		}},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Handler: func(x Exchange) error {
				if got := x.Value("user"); got != "from the store" {
					t.Errorf("the handler found %v, want \"from the store\"", got)
				}
				return say(200, "ok")(x)
			},
			Gates: []gate.Gate{enter(func(r gate.Request) gate.Pass {
				q <- [3]any{r.Value("user"), r.Value(key), r.Value("nothing")}
				return gate.Pass{}
			})},
		}},
	})
	get(t, address, "/detail").is(t, 200, "ok", "Content-Type: "+plain)
	if got, want := next(t, "the gate to report what it finds", q), ([3]any{"from the store", "from the context", nil}); got != want {
		t.Errorf("the gate found %v, want %v", got, want)
	}
}
