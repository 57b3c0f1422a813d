// Package gatefake has gates, endpoints, and a Redis for gates, for the tests of the
// adapters.
package gatefake

import (
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// Func makes a gate of a function.
type Func func(gate.Request) gate.Pass

// Enter calls the function.
func (f Func) Enter(q gate.Request) gate.Pass { return f(q) }

// Endpoint makes an endpoint of a function.
type Endpoint func(gate.Request) gate.Reply

// Serve calls the function.
func (f Endpoint) Serve(q gate.Request) gate.Reply { return f(q) }

// Leaving is a gate that captures 100 bytes and keeps what Leave was called
// with. It is for one request at a time.
type Leaving struct {
	T     testing.TB
	Calls int
	Reply *gate.Reply
}

// Enter lets every request pass.
func (l *Leaving) Enter(gate.Request) gate.Pass {
	return gate.Pass{Capture: 100, Leave: func(r *gate.Reply) { l.Calls, l.Reply = l.Calls+1, r }}
}

// Saw fails the test unless Leave was called once, with this.
func (l *Leaving) Saw(status int, body string, partial bool) {
	l.T.Helper()
	if l.Calls != 1 || l.Reply == nil {
		l.T.Fatalf("Leave was called %d times, last with %v, want once, with a reply", l.Calls, l.Reply)
	}
	if l.Reply.Status != status || string(l.Reply.Body) != body || l.Reply.Partial != partial {
		l.T.Errorf("Leave saw %d %q, partial %t; want %d %q, %t",
			l.Reply.Status, l.Reply.Body, l.Reply.Partial, status, body, partial)
	}
}

// SawNil fails the test unless Leave was called once, with nil.
func (l *Leaving) SawNil() {
	l.T.Helper()
	if l.Calls != 1 || l.Reply != nil {
		l.T.Errorf("Leave was called %d times, last with %v, want nil once", l.Calls, l.Reply)
	}
}
