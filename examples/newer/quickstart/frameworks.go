package main

import (
	"io"
	"net"

	"github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/echo5limit"
	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/examples/internal/quickstart"
	"github.com/neap-go/neap/fiber3limit"
)

var frameworks = []quickstart.Framework{
	{Name: "echo5", Title: "Echo v5", Serve: newEcho},
	{Name: "fiber3", Title: "Fiber v3", Serve: newFiber},
	{Name: "hertz", Title: "Hertz", Serve: newHertz},
}

func newEcho(routes []quickstart.Route) host.Server {
	app := echo.New()
	for _, e := range routes {
		app.Match(e.Methods(), quickstart.Colons(e.Path),
			func(c *echo.Context) error {
				r := c.Request()
				body := func() ([]byte, error) { return io.ReadAll(r.Body) }
				answer := e.Work(r.Context(), quickstart.Asked{Query: r.URL.RawQuery, Body: body})
				for name, value := range answer.Header {
					c.Response().Header().Set(name, value)
				}
				return c.Blob(answer.Status, answer.ContentType, []byte(answer.Text))
			},
			echo5limit.Middleware(e.Gate))
	}
	return host.HTTP(app)
}

func newFiber(routes []quickstart.Route) host.Server {
	app := fiber.New(fiber.Config{StrictRouting: true, CaseSensitive: true})
	for _, e := range routes {
		app.Add(e.Methods(), quickstart.Colons(e.Path), fiber3limit.Middleware(e.Gate), func(c fiber.Ctx) error {
			query := string(c.Request().URI().QueryString())
			body := func() ([]byte, error) { return c.Body(), nil }
			answer := e.Work(c.Context(), quickstart.Asked{Query: query, Body: body})
			for name, value := range answer.Header {
				c.Set(name, value)
			}
			c.Set(fiber.HeaderContentType, answer.ContentType)
			return c.Status(answer.Status).SendString(answer.Text)
		})
	}
	listen := func(ln net.Listener) error {
		return app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true})
	}
	return host.By(listen, app.ShutdownWithContext)
}
