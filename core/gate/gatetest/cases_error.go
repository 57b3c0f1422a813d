package gatetest

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

var errHandler = errors.New("gatetest: the handler's error")

// failing serves a route behind gates whose handler returns an error. It counts how often
// the application rendered the error.
func failing(t *testing.T, d Driver, gates ...gate.Gate) (address string, rendered *atomic.Int64) {
	rendered = new(atomic.Int64)
	return d.Serve(t, App{
		OnError: func(x Exchange, err error) {
			if !errors.Is(err, errHandler) {
				t.Errorf("the application was given %v to render, want %v", err, errHandler)
			}
			rendered.Add(1)
			x.AddHeader("X-Rendered", "1")
			_ = say(418, "sorry")(x)
		},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Gates: gates,
			Handler: func(x Exchange) error {
				x.SetHeader("X-Handler", "1")
				return errHandler
			},
		}},
	}), rendered
}

func handlerErrors(t *testing.T, d Driver) {
	if d.Errors == NoErrors {
		t.Skip("handlers of this framework return no error")
	}
	lines := []string{"Content-Type: " + plain, "X-Gate: 1", "X-Handler: 1", "X-Rendered: 1"}
	field := []gate.Field{{Name: "X-Gate", Value: "1"}}
	t.Run("WithoutLeave", func(t *testing.T) {
		address, rendered := failing(t, d, pass(gate.Pass{Header: field}))
		get(t, address, "/detail").is(t, 418, "sorry", lines...)
		if n := rendered.Load(); n != 1 {
			t.Errorf("the error was rendered %d times, want once", n)
		}
	})
	t.Run("WithLeave", func(t *testing.T) {
		l := watch(t)
		l.expect(2)
		leaving := pass(gate.Pass{Header: field, Capture: 100, Leave: l.leave})
		address, rendered := failing(t, d, leaving, leaving)
		get(t, address, "/detail").is(t, 418, "sorry", lines...)
		for _, r := range l.await(2) {
			if d.Errors == ErrorsOutside {
				if r != nil {
					t.Errorf("Leave saw %+v, want nil: the answer was made outside", *r)
				}
				continue
			}
			seen(t, r).is(t, 418, "sorry", lines...)
			whole(t, r)
		}
		if n := rendered.Load(); n != 1 {
			t.Errorf("the error was rendered %d times, want once", n)
		}
	})
}
