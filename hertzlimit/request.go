package hertzlimit

import (
	"bytes"
	"context"
	"iter"
	"net/netip"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// request copies what it returns: Hertz uses the memory of its bytes again.
type request struct {
	ctx context.Context
	c   *app.RequestContext
	own *again // the body that this request has put in the place of the server's
}

func (q *request) Context() context.Context { return q.ctx }

func (q *request) Method() string { return string(q.c.Request.Header.Method()) }

// Host does not use the Host of Hertz, which writes it in lower case. If the target is in
// absolute form, its host takes precedence over the Host field (RFC 9112 section 3.2.2).
func (q *request) Host() string {
	if h := &q.c.Request.Header; bytes.HasPrefix(h.RequestURI(), []byte("/")) {
		return string(h.Host())
	}
	return string(q.c.Request.URI().Host())
}

func (q *request) Path() string {
	path, _ := adapter.SplitTarget(q.target())
	return path
}

func (q *request) RawQuery() string {
	_, query := adapter.SplitTarget(q.target())
	return query
}

// target is the target without the fragment. No target has a fragment (RFC 9112 section
// 3.2), and Hertz cuts it off before a handler sees it.
func (q *request) target() string {
	target, _, _ := strings.Cut(string(q.c.Request.Header.RequestURI()), "#")
	return target
}

func (q *request) Route() string { return pattern(q.c.FullPath()) }

func (q *request) Param(name string) string {
	switch path := q.c.FullPath(); {
	case path == "":
		return "" // Hertz may have found a part of a route
	case name == adapter.Wildcard:
		_, name, _ = strings.Cut(path, "*")
	}
	return strings.Clone(q.c.Param(name))
}

// pattern writes a path of Hertz's as gates see it.
func pattern(fullPath string) string {
	segments := strings.Split(fullPath, "/")
	for i, segment := range segments {
		if at := strings.IndexAny(segment, ":*"); at >= 0 {
			name := segment[at+1:]
			if segment[at] == '*' {
				name = adapter.Wildcard
			}
			segments[i] = segment[:at] + "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}

func (q *request) Header(name string) []string { return header(&q.c.Request.Header).Values(name) }

func (q *request) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, f := range adapter.Fields(header(&q.c.Request.Header)) {
			if !yield(f.Name, f.Value) {
				return
			}
		}
	}
}

// Value copies bytes and strings, because middleware may have stored them as Hertz
// returned them.
func (q *request) Value(key any) any {
	var value any
	if name, ok := key.(string); ok {
		value, _ = q.c.Get(name)
	}
	if value == nil {
		value = q.ctx.Value(key)
	}
	switch value := value.(type) {
	case string:
		return strings.Clone(value)
	case []byte:
		return bytes.Clone(value)
	}
	return value
}

// RemoteAddr is not 0.0.0.0 for a connection: that stands for "none" in Hertz. A request of
// package ut has no connection, and the address as good as another.
func (q *request) RemoteAddr() netip.AddrPort {
	peer := adapter.Peer(q.c.RemoteAddr().String())
	if q.c.GetConn() != nil && peer.Addr().IsUnspecified() {
		return netip.AddrPort{}
	}
	return peer
}

var _ gate.Request = (*request)(nil)
