package gatehttp

import (
	"context"
	"iter"
	"net/http"
	"net/netip"

	"github.com/neap-go/neap/internal/address"
)

// Request answers, from an *http.Request, everything a gate asks except the
// route and its parameters, which only the framework knows. It holds one
// pointer, so that a struct of nothing but a Request turns into a gate.Request
// without an allocation.
type Request struct{ HTTP *http.Request }

// Context is the request's context.
func (q Request) Context() context.Context { return q.HTTP.Context() }

// Method is the request's method.
func (q Request) Method() string { return q.HTTP.Method }

// Host is the host as the client named it.
func (q Request) Host() string { return q.HTTP.Host }

// Value is what the request's context holds under key.
func (q Request) Value(key any) any { return q.HTTP.Context().Value(key) }

// Path is the path on the wire, whatever has rewritten the URL since.
func (q Request) Path() string {
	if q.HTTP.RequestURI == "" {
		return q.HTTP.URL.EscapedPath()
	}
	path, _ := SplitTarget(q.HTTP.RequestURI)
	return path
}

// RawQuery is the query on the wire.
func (q Request) RawQuery() string {
	if q.HTTP.RequestURI == "" {
		return q.HTTP.URL.RawQuery
	}
	_, query := SplitTarget(q.HTTP.RequestURI)
	return query
}

// Header returns every line of a field.
func (q Request) Header(name string) []string { return q.HTTP.Header.Values(name) }

// Headers yields every line of every field, sorted by name.
func (q Request) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range sortedNames(q.HTTP.Header, nil) {
			for _, value := range q.HTTP.Header[name] {
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

// RemoteAddr is the peer of the request, as [Peer] reads it.
func (q Request) RemoteAddr() netip.AddrPort { return Peer(q.HTTP.RemoteAddr) }

// Peer reads the text of a peer's address. It has no port where middleware has
// replaced it with a bare address, as chi's RealIP does; the port is 0 then. It
// is the zero AddrPort when it is no IP address, such as that of a unix socket.
func Peer(text string) netip.AddrPort {
	peer, err := netip.ParseAddrPort(text) // first, since an error costs an allocation
	if err == nil {
		return peer
	}
	peer, ok := address.Parse(text)
	if !ok {
		return netip.AddrPort{}
	}
	return peer
}
