package gatetest

import (
	"testing"

	"github.com/neap-go/neap/core/gate"
)

func leaveSees(t *testing.T, d Driver) {
	l := watch(t, 1)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail",
		Gates: []gate.Gate{pass(gate.Pass{
			Header: []gate.Field{{Name: "X-Gate", Value: "1"}}, Capture: 100, Leave: l.leave,
		})},
		Handler: say(404, "nothing here"),
	}}})
	get(t, address, "/detail").is(t, 404, "nothing here", "Content-Type: "+plain, "X-Gate: 1")
	reply := l.await(1)[0]
	seen(t, reply).is(t, 404, "nothing here", "Content-Type: "+plain, "X-Gate: 1")
	if reply.Partial {
		t.Error("a whole body is said to be partial")
	}
}
