package echolimit

import (
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Middleware returns middleware that asks g about every request. The writer is wrapped
// only for a gate that reads the response. Middleware panics if g is nil.
func Middleware(g gate.Gate) echo.MiddlewareFunc {
	adapter.RequireGate("echolimit.Middleware", g)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return guard(g, c, next) }
	}
}

// Handler returns a handler that serves the endpoint e. It panics if e is nil.
func Handler(e gate.Endpoint) echo.HandlerFunc {
	adapter.RequireEndpoint("echolimit.Handler", e)
	return func(c echo.Context) error {
		reply := e.Serve(newRequest(c))
		gatehttp.WriteReply(c.Response(), c.Request().Method, &reply)
		return nil
	}
}

func guard(g gate.Gate, c echo.Context, next echo.HandlerFunc) error {
	pass := g.Enter(newRequest(c))
	gatehttp.Apply(c.Response().Header(), pass.Header)
	if pass.Reply != nil {
		gatehttp.WriteReply(c.Response(), c.Request().Method, pass.Reply)
		return nil
	}
	if pass.Context != nil {
		outer := c.Request()
		c.SetRequest(outer.WithContext(pass.Context))
		defer func() {
			gatehttp.HandBack(outer, c.Request())
			c.SetRequest(outer)
		}()
	}
	if pass.Leave == nil {
		return next(c)
	}
	var err error
	adapter.Leave(pass.Leave, func() (reply *gate.Reply) {
		reply, err = recorded(c, pass.Capture, next)
		return reply
	})
	return err
}
