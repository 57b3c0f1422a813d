package gatetest

import (
	"testing"

	"github.com/neap-go/neap/core/gate"
)

func zeroPass(t *testing.T, d Driver) {
	address := d.Serve(t, App{
		Gates: []gate.Gate{pass(gate.Pass{})},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Gates: []gate.Gate{pass(gate.Pass{})}, Handler: say(201, "made"),
		}},
	})
	get(t, address, "/detail").is(t, 201, "made", "Content-Type: "+plain)
}

func fieldsAddOrReplace(t *testing.T, d Driver) {
	outer := []gate.Field{
		{Name: "X-List", Value: "outer", Add: true},
		{Name: "X-Single", Value: "outer"},
		{Name: "x-lower-case", Value: "1"},
	}
	inner := []gate.Field{
		{Name: "X-List", Value: "inner 1", Add: true},
		{Name: "X-List", Value: "inner 2", Add: true},
		{Name: "X-Single", Value: "inner, replaced"},
		{Name: "X-Single", Value: "inner"},
		{Name: "X-Handler", Value: "inner"},
	}
	address := d.Serve(t, App{
		Gates: []gate.Gate{pass(gate.Pass{Header: outer})},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Gates: []gate.Gate{pass(gate.Pass{Header: inner})},
			Handler: func(x Exchange) error {
				x.AddHeader("X-List", "handler")
				x.SetHeader("X-Handler", "handler")
				return say(200, "ok")(x)
			},
		}},
	})
	get(t, address, "/detail").is(t, 200, "ok",
		"Content-Type: "+plain,
		"X-Handler: handler",
		"X-List: outer", "X-List: inner 1", "X-List: inner 2", "X-List: handler",
		"X-Lower-Case: 1",
		"X-Single: inner")
}

func setCookies(t *testing.T, d Driver) {
	l := watch(t)
	l.expect(1)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail",
		Gates: []gate.Gate{pass(gate.Pass{
			Header: []gate.Field{
				{Name: "Set-Cookie", Value: "gate=1; Path=/", Add: true},
				{Name: "Set-Cookie", Value: "gate2=2; HttpOnly", Add: true},
			},
			Leave: l.leave,
		})},
		Handler: func(x Exchange) error {
			x.AddHeader("Set-Cookie", "handler=3; Path=/")
			x.AddHeader("Set-Cookie", "handler2=4; Max-Age=5")
			return say(200, "ok")(x)
		},
	}}})
	lines := []string{
		"Content-Type: " + plain,
		"Set-Cookie: gate=1; Path=/", "Set-Cookie: gate2=2; HttpOnly",
		"Set-Cookie: handler=3; Path=/", "Set-Cookie: handler2=4; Max-Age=5",
	}
	get(t, address, "/detail").is(t, 200, "ok", lines...)
	seen(t, l.await(1)[0]).is(t, 200, "", lines...)
}

// unknownPath: a gate around the application is also asked about requests for which there
// is no route. It sees the framework's own answer, unless that is made outside.
func unknownPath(t *testing.T, d Driver) {
	l := watch(t)
	l.expect(2)
	address := d.Serve(t, App{
		Gates: []gate.Gate{pass(gate.Pass{
			Header: []gate.Field{{Name: "X-Gate", Value: "1"}}, Capture: 1 << 10, Leave: l.leave,
		})},
		Routes: []Route{{Method: "GET", Pattern: "/detail", Handler: never(t)}},
	})
	for i, method := range []string{"GET", "HEAD"} {
		a := dial(t, address).do(method, "/nowhere")
		if a.status != 404 || a.header.Get("X-Gate") != "1" {
			t.Errorf("%s: got %d with %v, want a 404 with X-Gate", method, a.status, a.header)
		}
		if r := l.await(i + 1)[i]; r != nil {
			seen(t, r).is(t, a.status, a.body, visible(a.header)...)
		}
	}
}
