package fiber3limit

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatefiber"
)

// request copies every string that it returns: Fiber's strings are valid only until the
// handler has returned.
type request struct {
	gatefiber.Request

	c fiber.Ctx
}

func requestOf(c fiber.Ctx) request { return request{gatefiber.Request{Ctx: c.RequestCtx()}, c} }

func (q request) Context() context.Context { return q.c.Context() }

// Method needs no copy: it is one of the methods with which the application was made.
func (q request) Method() string { return q.c.Method() }

// Body is broken if Fiber could not read the request. Fiber's error handler answers such
// a request, but middleware runs before that.
func (q request) Body(max int64) ([]byte, error) {
	if gatefiber.Unread(q.c) {
		return nil, gate.ErrBodyBroken
	}
	return q.Request.Body(max)
}

func (q request) Value(key any) any { return q.Stored(q.Context(), key) }

func (q request) Route() string {
	if isMiddleware(q.c.Route()) {
		return ""
	}
	return gatefiber.Pattern(q.c.Route().Path)
}

func (q request) Param(name string) string {
	switch {
	case isMiddleware(q.c.Route()):
		return ""
	case name == adapter.Wildcard:
		name = gatefiber.Wildcard(q.c.Route().Params)
	}
	return strings.Clone(q.c.Params(name))
}

// isMiddleware reports whether a route was made by app.Use. Its path is a prefix, and not
// where the request goes. The method IsMiddleware of the fiber.Ctx does not help: it is
// also true in a route's own handlers, except in the last.
var isMiddleware = gatefiber.OfUse[fiber.Route]()

var _ gate.Request = request{}
