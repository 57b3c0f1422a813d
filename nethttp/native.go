package nethttp

import (
	"net/http"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Key makes a [gate.Key] of a function of the *http.Request. The function
// answers as a Key does; [gate.Tag] makes what it returns safe beside other
// keys. It panics when f is nil.
func Key(f func(*http.Request) (string, error)) gate.Key {
	return gatehttp.Native("nethttp", Context, f)
}

// Context returns the *http.Request that a gate's request was made of; false
// when another adapter made it.
func Context(q gate.Request) (*http.Request, bool) {
	switch q := gate.Unwrap(q).(type) {
	case request:
		return q.HTTP, true
	case *unrouted:
		return q.HTTP, true
	}
	return nil, false
}
