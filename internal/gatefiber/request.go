package gatefiber

import (
	"bytes"
	"context"
	"net/netip"
	"reflect"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Request is the part of a [gate.Request] that fasthttp knows. It copies every string
// that it returns: strings of fasthttp are valid only until the handler has returned.
type Request struct{ Ctx *fasthttp.RequestCtx }

// Host does not use that of Fiber, which may believe X-Forwarded-Host. If the target is
// in absolute form, its host takes precedence over the Host field (RFC 9112 section
// 3.2.2). fasthttp may also find a host in a target that begins with two slashes.
func (q Request) Host() string {
	header := &q.Ctx.Request.Header
	if target := header.RequestURI(); bytes.HasPrefix(target, []byte("/")) && !bytes.HasPrefix(target, []byte("//")) {
		return string(header.Host())
	}
	return string(q.Ctx.Request.URI().Host())
}

// Path is the path of the target as it was sent.
func (q Request) Path() string {
	path, _ := adapter.SplitTarget(q.target())
	return path
}

// RawQuery is the query of the target as it was sent.
func (q Request) RawQuery() string {
	_, query := adapter.SplitTarget(q.target())
	return query
}

// target is the target without the fragment. No target has a fragment (RFC 9112 section
// 3.2), and fasthttp cuts it off before a handler sees it.
func (q Request) target() string {
	target, _, _ := strings.Cut(string(q.Ctx.Request.Header.RequestURI()), "#")
	return target
}

// RemoteAddr is the peer's address.
func (q Request) RemoteAddr() netip.AddrPort {
	return adapter.Peer(q.Ctx.RemoteAddr().String())
}

// Stored is what middleware has stored under key, in the request or else in its context.
// A string of any type is copied, because middleware may have stored it as Fiber returned
// it.
func (q Request) Stored(ctx context.Context, key any) any {
	value := q.Ctx.UserValue(key)
	if value == nil {
		value = ctx.Value(key)
	}
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.String:
		return reflect.ValueOf(strings.Clone(v.String())).Convert(v.Type()).Interface()
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return reflect.ValueOf(bytes.Clone(v.Bytes())).Convert(v.Type()).Interface()
	}
	return value
}

// Lend returns whole with a context that reads the RequestCtx only until end is called:
// fasthttp uses the RequestCtx for other requests later.
func (q Request) Lend(whole gate.Request) (lent gate.Request, end func()) {
	if q.pooled(whole.Context()) {
		return adapter.Borrow(whole)
	}
	return whole, func() {}
}

// pooled reports whether a context reads values of the RequestCtx. The RequestCtx itself
// does, if middleware makes it the request's context.
func (q Request) pooled(ctx context.Context) bool {
	if ctx == context.Background() {
		return false
	}
	q.Ctx.SetUserValue(mark{}, true)
	return ctx.Value(mark{}) != nil
}

// mark is the key of a value that pooled looks for.
type mark struct{}
