package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/nethttp"
)

// framework makes a server of the routes.
type framework struct {
	name  string // as -framework takes it
	title string
	serve func([]route) host.Server
}

var frameworks = []framework{
	{"nethttp", "net/http", newNetHTTP},
	{"gin", "Gin", newGin},
	{"echo", "Echo", newEcho},
	{"fiber", "Fiber", newFiber},
}

func frameworkNames() []string {
	names := make([]string, len(frameworks))
	for i, f := range frameworks {
		names[i] = f.name
	}
	return names
}

// listen serves the routes by a framework.
func (f framework) listen(ctx context.Context, addr string, routes []route) (*host.Host, error) {
	h, err := host.Listen(ctx, addr, f.serve(routes))
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with -addr", err)
	}
	return h, nil
}

func newNetHTTP(routes []route) host.Server {
	mux := http.NewServeMux()
	for _, e := range routes {
		h := nethttp.Middleware(e.gate)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := func() ([]byte, error) { return io.ReadAll(r.Body) }
			answer := e.work(r.Context(), asked{r.URL.RawQuery, body})
			for name, value := range answer.header {
				w.Header().Set(name, value)
			}
			w.Header().Set("Content-Type", answer.contentType)
			w.WriteHeader(answer.status)
			_, _ = io.WriteString(w, answer.text)
		}))
		for _, method := range e.methods() {
			mux.Handle(method+" "+e.path, h)
		}
	}
	return host.HTTP(mux)
}

func newGin(routes []route) host.Server {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.UseRawPath = true // "%2F" in a parameter is no slash
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	for _, e := range routes {
		engine.Match(e.methods(), colons(e.path), ginlimit.Middleware(e.gate),
			func(c *gin.Context) {
				answer := e.work(c.Request.Context(), asked{c.Request.URL.RawQuery, c.GetRawData})
				for name, value := range answer.header {
					c.Header(name, value)
				}
				c.Data(answer.status, answer.contentType, []byte(answer.text))
			})
	}
	return host.HTTP(engine)
}

func newEcho(routes []route) host.Server {
	app := echo.New()
	for _, e := range routes {
		app.Match(e.methods(), colons(e.path),
			func(c echo.Context) error {
				r := c.Request()
				body := func() ([]byte, error) { return io.ReadAll(r.Body) }
				answer := e.work(r.Context(), asked{r.URL.RawQuery, body})
				for name, value := range answer.header {
					c.Response().Header().Set(name, value)
				}
				return c.Blob(answer.status, answer.contentType, []byte(answer.text))
			},
			echolimit.Middleware(e.gate))
	}
	return host.HTTP(app)
}

func newFiber(routes []route) host.Server {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, StrictRouting: true, CaseSensitive: true})
	for _, e := range routes {
		for _, method := range e.methods() {
			app.Add(method, colons(e.path), fiberlimit.Middleware(e.gate), func(c *fiber.Ctx) error {
				query := string(c.Request().URI().QueryString())
				body := func() ([]byte, error) { return c.Body(), nil }
				answer := e.work(c.UserContext(), asked{query, body})
				for name, value := range answer.header {
					c.Set(name, value)
				}
				c.Set(fiber.HeaderContentType, answer.contentType)
				return c.Status(answer.status).SendString(answer.text)
			})
		}
	}
	return host.Fiber(app)
}

// colons writes "/users/{id}" as "/users/:id".
func colons(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
