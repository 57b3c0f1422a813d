package nethttp

import (
	"net/http"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Key makes a [gate.Key] from a function of the *http.Request. The function returns what
// a Key returns. Use [gate.Tag] to make its result safe together with other keys. Key
// panics if f is nil.
func Key(f func(*http.Request) (string, error)) gate.Key {
	return adapter.Key("nethttp", Context, f)
}

// Context returns the *http.Request from which a gate's request was made. It returns
// false if another adapter made the request.
func Context(q gate.Request) (*http.Request, bool) {
	switch q := gate.Unwrap(q).(type) {
	case request:
		return q.HTTP, true
	case *unrouted:
		return q.HTTP, true
	}
	return nil, false
}
