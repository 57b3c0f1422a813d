package hertzlimit

import (
	"context"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Middleware returns middleware that asks g about every request, and aborts those that g
// answers itself. It panics if g is nil.
func Middleware(g gate.Gate) app.HandlerFunc {
	adapter.RequireGate("hertzlimit.Middleware", g)
	return func(ctx context.Context, c *app.RequestContext) {
		q := &request{ctx: ctx, c: c}
		defer q.giveBack()
		pass := g.Enter(q)
		apply(&c.Response.Header, pass.Header)
		if pass.Reply != nil {
			send(c, pass.Reply)
			c.Abort()
			return
		}
		admit(c)
		if pass.Context != nil {
			ctx = pass.Context
		}
		if pass.Leave == nil {
			c.Next(ctx)
			return
		}
		adapter.Leave(atEnd(c, pass.Leave), func() *gate.Reply {
			errs := len(c.Errors)
			c.Next(ctx)
			return captured(c, pass.Capture, errs)
		})
	}
}

// Handler returns a handler that serves the endpoint e. It panics if e is nil.
func Handler(e gate.Endpoint) app.HandlerFunc {
	adapter.RequireEndpoint("hertzlimit.Handler", e)
	return func(ctx context.Context, c *app.RequestContext) {
		q := &request{ctx: ctx, c: c}
		defer q.giveBack()
		reply := e.Serve(q)
		send(c, &reply)
	}
}
