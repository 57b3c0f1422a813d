package fiber3limit

import (
	"context"

	"github.com/gofiber/fiber/v3"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatefiber"
)

// Middleware returns middleware that asks g about every request. It panics if g is nil.
func Middleware(g gate.Gate) fiber.Handler {
	adapter.RequireGate("fiber3limit.Middleware", g)
	return func(c fiber.Ctx) error {
		q, end := lent(c)
		defer end()
		pass := g.Enter(q)
		gatefiber.Apply(&c.Response().Header, pass.Header)
		if pass.Reply != nil {
			gatefiber.Send(c.RequestCtx(), pass.Reply)
			return nil
		}
		gatefiber.Admit(c.RequestCtx())
		if pass.Context != nil {
			defer swapContext(pass.Context, c)()
		}
		if pass.Leave == nil {
			return c.Next()
		}
		return guarded(c, pass)
	}
}

// Handler returns a handler that serves the endpoint e. It panics if e is nil.
func Handler(e gate.Endpoint) fiber.Handler {
	adapter.RequireEndpoint("fiber3limit.Handler", e)
	return func(c fiber.Ctx) error {
		q, end := lent(c)
		defer end()
		reply := e.Serve(q)
		gatefiber.Send(c.RequestCtx(), &reply)
		return nil
	}
}

// lent returns the request, with a context that reads c only until end is called: Fiber
// uses c for other requests later.
func lent(c fiber.Ctx) (q gate.Request, end func()) {
	whole := requestOf(c)
	return whole.Lend(whole)
}

// swapContext makes ctx the request's context until restore is called. If the handler was
// abandoned, it may run on, and ctx stays.
func swapContext(ctx context.Context, c fiber.Ctx) (restore func()) {
	outer := c.Context()
	c.SetContext(ctx)
	return func() {
		if !c.IsAbandoned() {
			c.SetContext(outer)
		}
	}
}

// guarded runs the handler and tells the gate how it ended, unless the client gets
// something else. An abandoned handler may run on after the client has got the answer of
// the timeout. A request that Fiber could not read is answered by its error handler
// afterwards.
func guarded(c fiber.Ctx, pass gate.Pass) (err error) {
	adapter.Leave(gatefiber.AtEnd(c.RequestCtx(), pass.Leave), func() *gate.Reply {
		if err = c.Next(); c.IsAbandoned() || gatefiber.Unread(c) {
			return nil
		}
		if err != nil {
			render(c, err)
			err = nil
		}
		reply := gatefiber.Captured(c.RequestCtx(), pass.Capture)
		if c.IsAbandoned() { // abandoned meanwhile: the captured answer may be that of the timeout
			return nil
		}
		return reply
	})
	return err
}

// render does what Fiber does with an error that reaches it.
func render(c fiber.Ctx, err error) {
	if c.App().ErrorHandler(c, err) != nil {
		_ = c.SendStatus(fiber.StatusInternalServerError)
	}
}

// DropTrailers is middleware for app.Use. Mount it before any other middleware.
//
// fasthttp puts the fields of a request's trailer into its header, where they look as if
// a proxy had let them pass. DropTrailers removes them. It also keeps those away that
// come with a body which is still to be read. net/http separates trailers by itself.
//
// Gates are safe without DropTrailers. Without it a gate refuses to key a chunked request
// by a field that middleware has set or changed, because it cannot tell that field from
// one of the trailer. With it the gate sees what the middleware set, and handlers that
// read the header themselves are safe from trailers, too.
//
// DropTrailers also removes what middleware before it has set in the header of a chunked
// request.
func DropTrailers(c fiber.Ctx) error {
	requestOf(c).DropTrailer()
	return c.Next()
}
