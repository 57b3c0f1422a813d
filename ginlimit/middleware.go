package ginlimit

import (
	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Middleware returns middleware that asks g about every request, and aborts those that g
// answers itself. The writer is wrapped only for a gate that reads the response.
// Middleware panics if g is nil.
func Middleware(g gate.Gate) gin.HandlerFunc {
	adapter.RequireGate("ginlimit.Middleware", g)
	return func(c *gin.Context) {
		if !guard(g, c, (*gin.Context).Next) {
			c.Abort()
		}
	}
}

// Handler returns a handler that serves the endpoint e. It panics if e is nil.
func Handler(e gate.Endpoint) gin.HandlerFunc {
	adapter.RequireEndpoint("ginlimit.Handler", e)
	return func(c *gin.Context) {
		q, end := lent(c)
		defer end()
		reply := e.Serve(q)
		send(c, &reply)
	}
}

// lent returns the request, with a context that reads c only until end is called: Gin
// uses c for other requests later.
func lent(c *gin.Context) (q gate.Request, end func()) {
	q = newRequest(c)
	if q.Context().Value(gin.ContextKey) != nil {
		return adapter.Borrow(q)
	}
	return q, func() {}
}

// guard reports whether g let the request pass.
func guard(g gate.Gate, c *gin.Context, next gin.HandlerFunc) bool {
	q, end := lent(c)
	defer end()
	pass := g.Enter(q)
	gatehttp.Apply(c.Writer.Header(), pass.Header)
	if pass.Reply != nil {
		send(c, pass.Reply)
		return false
	}
	if pass.Context != nil {
		outer := c.Request
		c.Request = outer.WithContext(pass.Context)
		defer func() {
			gatehttp.HandBack(outer, c.Request)
			c.Request = outer
		}()
	}
	if pass.Leave == nil {
		next(c)
		return true
	}
	adapter.Leave(pass.Leave, func() *gate.Reply { return recorded(c, pass.Capture, next) })
	return true
}

// send leaves nothing for Gin to write: Gin would add a body of its own to a status
// without one.
func send(c *gin.Context, reply *gate.Reply) {
	gatehttp.WriteReply(c.Writer, c.Request.Method, reply)
	c.Writer.WriteHeaderNow()
}
