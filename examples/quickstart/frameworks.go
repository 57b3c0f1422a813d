package main

import (
	"io"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/examples/internal/quickstart"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/ginlimit"
)

var frameworks = []quickstart.Framework{
	quickstart.NetHTTP,
	{Name: "gin", Title: "Gin", Serve: newGin},
	{Name: "echo", Title: "Echo v4", Serve: newEcho},
	{Name: "echo5", Title: "Echo v5"},
	{Name: "fiber", Title: "Fiber v2", Serve: newFiber},
	{Name: "fiber3", Title: "Fiber v3"},
	{Name: "hertz", Title: "Hertz"},
}

func newGin(routes []quickstart.Route) host.Server {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.UseRawPath = true // "%2F" in a parameter is no slash
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	for _, e := range routes {
		engine.Match(e.Methods(), quickstart.Colons(e.Path), ginlimit.Middleware(e.Gate),
			func(c *gin.Context) {
				answer := e.Work(c.Request.Context(), quickstart.Asked{Query: c.Request.URL.RawQuery, Body: c.GetRawData})
				for name, value := range answer.Header {
					c.Header(name, value)
				}
				c.Data(answer.Status, answer.ContentType, []byte(answer.Text))
			})
	}
	return host.HTTP(engine)
}

func newEcho(routes []quickstart.Route) host.Server {
	app := echo.New()
	for _, e := range routes {
		app.Match(e.Methods(), quickstart.Colons(e.Path),
			func(c echo.Context) error {
				r := c.Request()
				body := func() ([]byte, error) { return io.ReadAll(r.Body) }
				answer := e.Work(r.Context(), quickstart.Asked{Query: r.URL.RawQuery, Body: body})
				for name, value := range answer.Header {
					c.Response().Header().Set(name, value)
				}
				return c.Blob(answer.Status, answer.ContentType, []byte(answer.Text))
			},
			echolimit.Middleware(e.Gate))
	}
	return host.HTTP(app)
}

func newFiber(routes []quickstart.Route) host.Server {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, StrictRouting: true, CaseSensitive: true})
	for _, e := range routes {
		for _, method := range e.Methods() {
			app.Add(method, quickstart.Colons(e.Path), fiberlimit.Middleware(e.Gate), func(c *fiber.Ctx) error {
				query := string(c.Request().URI().QueryString())
				body := func() ([]byte, error) { return c.Body(), nil }
				answer := e.Work(c.UserContext(), quickstart.Asked{Query: query, Body: body})
				for name, value := range answer.Header {
					c.Set(name, value)
				}
				c.Set(fiber.HeaderContentType, answer.ContentType)
				return c.Status(answer.Status).SendString(answer.Text)
			})
		}
	}
	return host.By(app.Listener, app.ShutdownWithContext)
}
