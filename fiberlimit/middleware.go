package fiberlimit

import (
	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatehttp"
)

// Middleware returns middleware that asks g about every request. It panics when
// g is nil.
func Middleware(g gate.Gate) fiber.Handler {
	gatehttp.RequireGate("fiberlimit.Middleware", g)
	return guard(g, (*fiber.Ctx).Next)
}

// Handler serves a gate that is a whole endpoint and always replies. A request
// that it lets pass is answered with a 500. It panics when g is nil.
func Handler(g gate.Gate) fiber.Handler {
	gatehttp.RequireGate("fiberlimit.Handler", g)
	return guard(g, func(c *fiber.Ctx) error {
		send(c, gate.Unanswered())
		return nil
	})
}

func guard(g gate.Gate, next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		pass := g.Enter(request{c})
		apply(&c.Response().Header, pass.Header)
		if pass.Reply != nil {
			send(c, pass.Reply)
			return nil
		}
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

// render does what Fiber does with an error that reaches it.
func render(c *fiber.Ctx, err error) {
	if c.App().ErrorHandler(c, err) != nil {
		_ = c.SendStatus(fiber.StatusInternalServerError)
	}
}
