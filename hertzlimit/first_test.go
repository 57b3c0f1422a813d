package hertzlimit_test

import (
	"context"
	"net"
	"testing"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/network/standard"

	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/hertzlimit"
)

func TestFirst(t *testing.T) {
	alone(t)
	t.Parallel()
	gatetest.Run(t, gatetest.Driver{Serve: func(t testing.TB, a gatetest.App) (address string) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		h := server.Default(server.WithListener(ln), server.WithTransport(standard.NewTransporter))
		for _, g := range a.Gates {
			h.Use(hertzlimit.Middleware(g))
		}
		for _, route := range a.Routes {
			var handlers []app.HandlerFunc
			for _, g := range route.Gates {
				handlers = append(handlers, hertzlimit.Middleware(g))
			}
			handlers = append(handlers, func(_ context.Context, c *app.RequestContext) {
				_ = route.Handler(first{c: c})
			})
			h.Handle(route.Method, route.Pattern, handlers...)
		}
		go func() { _ = h.Run() }()
		t.Cleanup(func() { _ = h.Close() })
		return ln.Addr().String()
	}})
}

// first is an Exchange that can send and no more.
type first struct {
	gatetest.Exchange
	c *app.RequestContext
}

func (x first) SetHeader(name, value string) { x.c.Response.Header.Set(name, value) }
func (x first) AddHeader(name, value string) { x.c.Response.Header.Add(name, value) }

func (x first) Send(status int, body string) error {
	x.c.SetStatusCode(status)
	x.c.SetBodyString(body)
	return nil
}
