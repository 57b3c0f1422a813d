package fiberlimit

import (
	"bytes"
	"context"
	"net/netip"
	"reflect"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
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
