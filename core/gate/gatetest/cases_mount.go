package gatetest

import (
	"testing"

	"github.com/neap-go/neap/core/gate"
)

func endpoints(t *testing.T, d Driver) {
	l := watch(t)
	l.expect(1)
	field := []gate.Field{{Name: "X-Gate", Value: "1"}}
	address := d.Serve(t, App{Routes: []Route{
		{Method: "POST", Pattern: "/callback", Endpoint: enter(func(q gate.Request) gate.Pass {
			body, err := q.Body(1 << 10)
			if err != nil {
				t.Error(err)
			}
			return gate.Pass{Header: field, Reply: &gate.Reply{
				Status: 202, Header: []gate.Field{{Name: "Content-Type", Value: plain}}, Body: append(body, '!'),
			}}
		})},
		{Method: "GET", Pattern: "/passes", Endpoint: pass(gate.Pass{Header: field})},
		{Method: "GET", Pattern: "/leaves", Endpoint: pass(gate.Pass{Header: field, Capture: 1000, Leave: l.leave})},
	}})
	get(t, d.Serve(t, App{
		Gates:  []gate.Gate{gate.Chain()},
		Routes: []Route{{Method: "GET", Pattern: "/detail", Gates: []gate.Gate{gate.Chain()}, Handler: say(200, "ok")}},
	}), "/detail").is(t, 200, "ok", "Content-Type: "+plain)
	dial(t, address).post("/callback", "success").is(t, 202, "success!", "Content-Type: "+plain, "X-Gate: 1")

	const problem = `{"title":"Internal Server Error","status":500}` + "\n" // as any other 500 of a gate
	lines := []string{"Cache-Control: no-store", "Content-Type: application/problem+json", "X-Gate: 1"}
	get(t, address, "/passes").is(t, 500, problem, lines...)
	get(t, address, "/leaves").is(t, 500, problem, lines...)
	seen(t, l.await(1)[0]).is(t, 500, problem, lines...)
}

type pointerGate struct{}

func (*pointerGate) Enter(gate.Request) gate.Pass { return gate.Pass{} }

// nilGates: a route that looks guarded and is not must not start.
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
					t.Error("it was mounted without a panic")
				}
			}()
			d.Serve(t, app)
		})
	}
}
