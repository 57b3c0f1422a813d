package gatehttp

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"github.com/neap-go/neap/core/gate/adapter"
)

// Request answers from an *http.Request everything that a gate asks, except the route and
// its parameters, which only the framework knows. It holds one pointer, so that a struct
// with only a Request in it turns into a gate.Request without an allocation.
type Request struct{ HTTP *http.Request }

// Context is the request's context.
func (q Request) Context() context.Context { return q.HTTP.Context() }

// Method is the request's method.
func (q Request) Method() string { return q.HTTP.Method }

// Host is the host that the client named.
func (q Request) Host() string { return q.HTTP.Host }

// Value is what the request's context holds under key.
func (q Request) Value(key any) any { return q.HTTP.Context().Value(key) }

// Path is the path as it was sent, even if the URL was rewritten since then.
func (q Request) Path() string {
	if q.HTTP.RequestURI == "" {
		return q.HTTP.URL.EscapedPath()
	}
	path, _ := adapter.SplitTarget(q.HTTP.RequestURI)
	return path
}

// RawQuery is the query as it was sent.
func (q Request) RawQuery() string {
	if q.HTTP.RequestURI == "" {
		return q.HTTP.URL.RawQuery
	}
	_, query := adapter.SplitTarget(q.HTTP.RequestURI)
	return query
}

// Header returns every line of a field.
func (q Request) Header(name string) []string { return q.HTTP.Header.Values(name) }

// Headers yields every line of every field, sorted by name.
func (q Request) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range slices.Sorted(maps.Keys(q.HTTP.Header)) {
			for _, value := range q.HTTP.Header[name] {
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

// RemoteAddr is the peer of the request, as [adapter.Peer] reads it.
func (q Request) RemoteAddr() netip.AddrPort { return adapter.Peer(q.HTTP.RemoteAddr) }
