package fiberlimit

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Middleware returns middleware that asks g about every request. It panics when
// g is nil.
func Middleware(g gate.Gate) fiber.Handler {
	gatehttp.RequireGate("fiberlimit.Middleware", g)
	return guard(g, (*fiber.Ctx).Next)
}

// Handler serves an endpoint. It panics if e is nil.
func Handler(e gate.Endpoint) fiber.Handler {
	gatehttp.RequireEndpoint("fiberlimit.Handler", e)
	return func(c *fiber.Ctx) error {
		q, end := lent(c)
		defer end()
		reply := e.Serve(q)
		send(c, &reply)
		return nil
	}
}

// lent is the request, with a context that reads c no longer than until end is
// called: Fiber uses c for other requests later.
func lent(c *fiber.Ctx) (q gate.Request, end func()) {
	if pooled(c) {
		return gatehttp.Borrow(request{c})
	}
	return request{c}, func() {}
}

func guard(g gate.Gate, next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		q, end := lent(c)
		defer end()
		pass := g.Enter(q)
		apply(&c.Response().Header, pass.Header)
		if pass.Reply != nil {
			send(c, pass.Reply)
			return nil
		}
		c.Locals(refusedKey{}, nil) // a handler outside may have been refused a part before
		if pass.Context != nil {
			outer := c.UserContext()
			c.SetUserContext(pass.Context)
			defer c.SetUserContext(outer)
		}
		if pass.Leave == nil {
			return next(c)
		}
		gatehttp.Leave(pass.Leave, func() *gate.Reply {
			if err := next(c); err != nil {
				render(c, err)
			}
			return captured(c, pass.Capture)
		})
		return nil
	}
}

// pooled says that the request's context reads values of the RequestCtx, which is
// another request's later, as it does after c.SetUserContext(c.Context()).
func pooled(c *fiber.Ctx) bool {
	ctx := c.UserContext()
	if ctx == context.Background() {
		return false
	}
	c.Locals(mark{}, true)
	return ctx.Value(mark{}) != nil
}

// mark is the key of a value that pooled looks for.
type mark struct{}

// render does what Fiber does with an error that reaches it.
func render(c *fiber.Ctx, err error) {
	if c.App().ErrorHandler(c, err) != nil {
		_ = c.SendStatus(fiber.StatusInternalServerError)
	}
}
