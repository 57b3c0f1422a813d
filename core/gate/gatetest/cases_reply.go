package gatetest

import (
	"testing"

	"github.com/neap-go/neap/core/gate"
)

func replyInstead(t *testing.T, d Driver) {
	refused := &gate.Reply{
		Status: 429,
		Header: []gate.Field{
			{Name: "Content-Type", Value: "application/problem+json"},
			{Name: "X-List", Value: "reply", Add: true},
			{Name: "X-Single", Value: "reply"},
		},
		Body: []byte(`{"status":429}`),
	}
	address := d.Serve(t, App{
		Gates: []gate.Gate{pass(gate.Pass{Header: []gate.Field{{Name: "X-Global", Value: "1"}}})},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Handler: never(t),
			Gates: []gate.Gate{pass(gate.Pass{
				Header: []gate.Field{{Name: "X-List", Value: "pass", Add: true}, {Name: "X-Single", Value: "pass"}},
				Reply:  refused,
				Leave:  func(*gate.Reply) { t.Error("Leave was called after a Reply") },
			})},
		}},
	})
	lines := []string{
		"Content-Type: application/problem+json",
		"X-Global: 1", "X-List: pass", "X-List: reply", "X-Single: reply",
	}
	c := dial(t, address)
	for range 3 {
		c.do("GET", "/detail").is(t, 429, `{"status":429}`, lines...)
	}
}
