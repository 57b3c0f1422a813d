package main

import (
	"context"
	"net"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/hlog"
	"github.com/cloudwego/hertz/pkg/network/standard"

	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/examples/internal/quickstart"
	"github.com/neap-go/neap/hertzlimit"
)

// hertz is a server of Hertz, which takes its listener when it is made.
type hertz struct {
	routes []quickstart.Route
	serves chan *server.Hertz
}

func newHertz(routes []quickstart.Route) host.Server {
	hlog.SetLevel(hlog.LevelError) // it would log where it listens
	return hertz{routes, make(chan *server.Hertz, 1)}
}

func (s hertz) Serve(ln net.Listener) error {
	h := server.New(server.WithListener(ln), server.WithUseRawPath(true), server.WithDisablePrintRoute(true),
		server.WithRedirectTrailingSlash(false), server.WithHandleMethodNotAllowed(true),
		server.WithTransport(standard.NewTransporter)) // the other closes file descriptors twice
	for _, e := range s.routes {
		for _, method := range e.Methods() {
			h.Handle(method, quickstart.Colons(e.Path), hertzlimit.Middleware(e.Gate), func(ctx context.Context, c *app.RequestContext) {
				answer := e.Work(ctx, quickstart.Asked{Query: string(c.URI().QueryString()), Body: c.Body})
				for name, value := range answer.Header {
					c.Header(name, value)
				}
				c.Data(answer.Status, answer.ContentType, []byte(answer.Text))
			})
		}
	}
	s.serves <- h
	return h.Run()
}

func (s hertz) Shutdown(ctx context.Context) error {
	select {
	case h := <-s.serves:
		return h.Shutdown(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}
