package adapter

import (
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/isnil"
)

// RequireGate panics if g is nil, or an interface that holds a nil: a server should not
// start with a route that looks guarded and is not. where names the call for the message,
// such as "fiberlimit.Middleware".
func RequireGate(where string, g gate.Gate) {
	if isnil.Value(g) {
		panic(where + ": the gate is nil; make one with gate.RateLimit and its like")
	}
}

// RequireEndpoint does the same for an endpoint.
func RequireEndpoint(where string, e gate.Endpoint) {
	if isnil.Value(e) {
		panic(where + ": the endpoint is nil; make one with callback.New")
	}
}
