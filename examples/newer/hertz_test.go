package newer

import (
	"context"
	"net"
	"testing"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/network/standard"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/hertzlimit"
	"github.com/neap-go/neap/internal/fleet"
)

var hertz = fleet.Framework{
	Instance: func(tb testing.TB, g gate.Gate, do fleet.Work) string {
		return hertzServes(tb, hertzlimit.Middleware(g), func(ctx context.Context, c *app.RequestContext) {
			status, body := do(ctx, c.Response.Header.Add)
			c.SetStatusCode(status)
			c.Response.SetBodyString(body)
		})
	},
	Endpoint: func(tb testing.TB, e gate.Endpoint) string { return hertzServes(tb, hertzlimit.Handler(e)) },
}

func hertzServes(tb testing.TB, handlers ...app.HandlerFunc) (address string) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	h := server.New(server.WithListener(ln), server.WithUseRawPath(true), server.WithDisablePrintRoute(true),
		server.WithTransport(standard.NewTransporter)) // the other closes file descriptors twice
	h.POST("/orders/:id", handlers...)
	go func() { _ = h.Run() }()
	tb.Cleanup(func() { _ = h.Close() })
	return ln.Addr().String()
}
