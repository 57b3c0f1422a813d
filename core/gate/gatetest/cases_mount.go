package gatetest

import (
	"testing"

	"github.com/neap-go/neap/core/gate"
)

func endpoints(t *testing.T, d Driver) {
	address := d.Serve(t, App{Routes: []Route{
		{Method: "POST", Pattern: "/callback", Endpoint: serve(func(q gate.Request) gate.Reply {
			body, err := q.Body(1 << 10)
			if err != nil {
				t.Error(err)
			}
			return gate.Reply{
				Status: 202, Header: []gate.Field{{Name: "Content-Type", Value: plain}, {Name: "X-Gate", Value: "1"}}, Body: append(body, '!'),
			}
		})},
	}})
	get(t, d.Serve(t, App{
		Gates:  []gate.Gate{gate.Chain()},
		Routes: []Route{{Method: "GET", Pattern: "/detail", Gates: []gate.Gate{gate.Chain()}, Handler: say(200, "ok")}},
	}), "/detail").is(t, 200, "ok", "Content-Type: "+plain)
	dial(t, address).post("/callback", "success").is(t, 202, "success!", "Content-Type: "+plain, "X-Gate: 1")
}

type pointerGate struct{}

func (*pointerGate) Enter(gate.Request) gate.Pass  { return gate.Pass{} }
func (*pointerGate) Serve(gate.Request) gate.Reply { return gate.Reply{} }

// nilGates: a route that looks guarded and is not must not be mounted.
func nilGates(t *testing.T, d Driver) {
	var typed *pointerGate
	for name, app := range map[string]App{
		"Nil":           {Gates: []gate.Gate{nil}},
		"NilPointer":    {Gates: []gate.Gate{typed}},
		"NilOfARoute":   {Routes: []Route{{Method: "GET", Pattern: "/detail", Gates: []gate.Gate{nil}, Handler: never(t)}}},
		"NilEndpoint":   {Routes: []Route{{Method: "GET", Pattern: "/detail", Endpoint: typed}}},
		"NilFuncOfType": {Gates: []gate.Gate{enter(nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("a nil was mounted without a panic, want a panic")
				}
			}()
			d.Serve(t, app)
		})
	}
}
