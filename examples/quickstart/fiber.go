package main

import (
	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/fiberlimit"
)

func newFiber(endpoints []endpoint) host.Server {
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
	return host.Fiber(app)
}
