package gatefiber_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatefiber"
)

// Where others than a server of fasthttp serve a RequestCtx, as Fiber's adaptor to
// net/http does, a gate is left when the stream was read. Nothing tells when a connection
// has ended that was taken over, so the gate is left before.
func TestWithoutAServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handle func(c *fasthttp.RequestCtx)
		finish func(c *fasthttp.RequestCtx)
	}{
		"Body":      {stream, func(c *fasthttp.RequestCtx) { _ = c.Response.Body() }},
		"ReadOnly":  {stream, func(c *fasthttp.RequestCtx) { _, _ = io.Copy(io.Discard, onlyReads{c.Response.BodyStream()}) }},
		"Reset":     {stream, func(c *fasthttp.RequestCtx) { c.Response.Reset() }},
		"TakenOver": {func(c *fasthttp.RequestCtx) { c.Hijack(func(net.Conn) {}) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, calls := new(fasthttp.RequestCtx), 0
			left := gatefiber.AtEnd(ctx, func(*gate.Reply) { calls++ })
			c.handle(ctx)
			left(gatefiber.Captured(ctx, 100))
			if c.finish != nil {
				if calls != 0 {
					t.Error("the gate was left before the stream")
				}
				c.finish(ctx)
			}
			if calls != 1 {
				t.Errorf("the gate was left %d times, want once", calls)
			}
		})
	}
}

func stream(c *fasthttp.RequestCtx) { c.SetBodyStream(strings.NewReader("body"), 4) }

type onlyReads struct{ io.Reader }
