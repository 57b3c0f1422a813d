package fiberlimit

import (
	"bytes"
	"context"
	"iter"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatehttp"
)

// request copies every string it returns: Fiber's are valid only until the
// handler has returned.
type request struct{ c *fiber.Ctx }

func (q request) Context() context.Context { return q.c.UserContext() }

func (q request) Method() string { return strings.Clone(q.c.Method()) }

// Host is not c.Hostname, which may believe X-Forwarded-Host. A target in
// absolute form names the host before the Host field does (RFC 9112 section
// 3.2.2).
func (q request) Host() string {
	if header := &q.c.Request().Header; bytes.HasPrefix(header.RequestURI(), []byte("/")) {
		return string(header.Host())
	}
	return string(q.c.Request().URI().Host())
}

func (q request) Path() string {
	path, _ := gatehttp.SplitTarget(q.target())
	return path
}

func (q request) RawQuery() string {
	_, query := gatehttp.SplitTarget(q.target())
	return query
}

// target is without the fragment, which no target has (RFC 9112 section 3.2)
// and which fasthttp cuts off before a handler sees it.
func (q request) target() string {
	target, _, _ := strings.Cut(string(q.c.Request().Header.RequestURI()), "#")
	return target
}

// unlisted are fields that net/http takes out of a request's header.
var unlisted = []string{fiber.HeaderHost, fiber.HeaderTrailer, fiber.HeaderTransferEncoding}

// merged are fields of which fasthttp makes one line: of the last one sent, or
// of all.
var merged = []string{fiber.HeaderContentType, fiber.HeaderUserAgent, fiber.HeaderCookie}

func (q request) Header(name string) []string {
	name = http.CanonicalHeaderKey(name)
	if slices.Contains(unlisted, name) {
		return nil
	}
	header := &q.c.Request().Header
	if slices.Contains(merged, name) {
		if sent := lines(name, header.VisitAllInOrder); len(sent) > 1 {
			return sent
		}
	}
	return lines(name, header.VisitAll)
}

func lines(name string, visit func(func(key, value []byte))) (lines []string) {
	visit(func(key, value []byte) {
		if len(key) == len(name) && http.CanonicalHeaderKey(string(key)) == name {
			lines = append(lines, string(value))
		}
	})
	return lines
}

func (q request) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, f := range gatehttp.Fields(q.header()) {
			if !yield(f.Name, f.Value) {
				return
			}
		}
	}
}

func (q request) header() http.Header {
	header := http.Header{}
	q.c.Request().Header.VisitAll(func(key, value []byte) { header.Add(string(key), string(value)) })
	for _, name := range unlisted {
		header.Del(name)
	}
	for _, name := range merged {
		if sent := q.Header(name); len(sent) > 1 {
			header[name] = sent
		}
	}
	return header
}

func (q request) Value(key any) any {
	value := q.c.Locals(key)
	if value == nil {
		value = q.c.UserContext().Value(key)
	}
	return cloned(value)
}

// cloned copies a string, of whatever type, that middleware may have stored as
// Fiber handed it out.
func cloned(value any) any {
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.String:
		return reflect.ValueOf(strings.Clone(v.String())).Convert(v.Type()).Interface()
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return reflect.ValueOf(bytes.Clone(v.Bytes())).Convert(v.Type()).Interface()
	}
	return value
}

func (q request) RemoteAddr() netip.AddrPort {
	return gatehttp.Peer(q.c.Context().RemoteAddr().String())
}

var _ gate.Request = request{}
