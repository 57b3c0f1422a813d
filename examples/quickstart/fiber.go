package main

import (
	"context"
	"net"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/fiberlimit"
)

func newFiber(endpoints []endpoint) server {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, StrictRouting: true, CaseSensitive: true})
	for _, e := range endpoints {
		for _, method := range e.methods {
			app.Add(method, colons(e.path), fiberlimit.Middleware(e.gate), func(c *fiber.Ctx) error {
				r := e.work(c.UserContext(), asked{string(c.Request().URI().QueryString()), func() ([]byte, error) {
					return c.Body(), nil
				}})
				for name, value := range r.header {
					c.Set(name, value)
				}
				c.Set(fiber.HeaderContentType, r.contentType)
				return c.Status(r.status).SendString(r.text)
			})
		}
	}
	return fiberServer{app}
}

// fiberServer calls Fiber's methods by the names they have in net/http.
type fiberServer struct{ app *fiber.App }

func (s fiberServer) Serve(ln net.Listener) error        { return s.app.Listener(ln) }
func (s fiberServer) Shutdown(ctx context.Context) error { return s.app.ShutdownWithContext(ctx) }
