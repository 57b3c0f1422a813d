package nethttp

import (
	"net/http"
	"path"
	"strings"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatehttp"
)

// request holds one pointer, so that it becomes a gate.Request without an allocation.
type request struct{ gatehttp.Request }

func newRequest(r *http.Request, mux *http.ServeMux) gate.Request {
	q := request{gatehttp.Request{HTTP: r}}
	if mux == nil {
		return q
	}
	return &unrouted{q, mux}
}

func (q request) Route() string { return route(q.HTTP.Pattern) }

func (q request) Param(name string) string {
	if name != adapter.Wildcard {
		return q.HTTP.PathValue(name)
	}
	if native := wildcard(q.HTTP.Pattern); native != "" {
		return q.HTTP.PathValue(native)
	}
	// http.StripPrefix between the mux and the gate removes from the URL a part that the
	// route matched. Around the mux it leaves more in the path on the wire than the route
	// matched.
	route := q.Route()
	for _, path := range []string{canonical(q.Path()), q.HTTP.URL.EscapedPath()} {
		if value := gatehttp.Param(route, path, name); value != "" && q.agrees(route, path) {
			return value
		}
	}
	return ""
}

// agrees reports whether path has, for the other parameters of the route, the values that
// the mux has found in the path that it matched.
func (q request) agrees(route, path string) bool {
	for {
		_, rest, more := strings.Cut(route, "{")
		if !more {
			return true
		}
		var name string
		name, route, _ = strings.Cut(rest, "}")
		if name != adapter.Wildcard && gatehttp.Param(q.Route(), path, name) != q.HTTP.PathValue(name) {
			return false
		}
	}
}

// unrouted is a request on its way to a mux. The mux is asked where the request will go.
type unrouted struct {
	request
	mux *http.ServeMux
}

func (q *unrouted) pattern() string {
	_, pattern := q.mux.Handler(q.HTTP)
	return pattern
}

func (q *unrouted) Route() string { return route(q.pattern()) }

func (q *unrouted) Param(name string) string {
	pattern := q.pattern()
	if name == wildcard(pattern) {
		name = adapter.Wildcard
	}
	return gatehttp.Param(route(pattern), canonical(q.HTTP.URL.EscapedPath()), name)
}

// route writes a ServeMux pattern as gates see it: without method and host, with nothing
// for "{$}", and with "{...}" for what matches the rest of a path.
func route(pattern string) string {
	slash := strings.IndexByte(pattern, '/')
	if slash < 0 {
		return ""
	}
	pattern = pattern[slash:]
	switch {
	case strings.HasSuffix(pattern, "/{$}"):
		return strings.TrimSuffix(pattern, "{$}")
	case strings.HasSuffix(pattern, "/"), strings.HasSuffix(pattern, "...}"):
		return pattern[:strings.LastIndexByte(pattern, '/')+1] + "{" + adapter.Wildcard + "}"
	}
	return pattern
}

// wildcard is the name that a pattern gives to the rest of a path, or "".
func wildcard(pattern string) string {
	name, ok := strings.CutSuffix(pattern, "...}")
	if !ok {
		return ""
	}
	return name[strings.LastIndexByte(name, '{')+1:]
}

// canonical is the path that a ServeMux matches, or to which it redirects.
func canonical(escaped string) string {
	cleaned := path.Clean("/" + escaped)
	if strings.HasSuffix(escaped, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned
}
