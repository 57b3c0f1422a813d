package echo5limit_test

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/echo5limit"
	"github.com/neap-go/neap/internal/gatehttp/echotest"
)

func TestEcho(t *testing.T) {
	t.Parallel()
	echotest.Run(t, echotest.Driver[*echo.Context]{
		New: func() echotest.App[*echo.Context] {
			e := echo.New()
			e.Logger = slog.New(slog.DiscardHandler)
			return app{e}
		},
		Middleware: func(g gate.Gate) echotest.Middleware[*echo.Context] { return plain(echo5limit.Middleware(g)) },
		Handler:    func(e gate.Endpoint) echotest.Handler[*echo.Context] { return echo5limit.Handler(e) },
		Key:        echo5limit.Key,
		Context:    echo5limit.Context,
		Response:   func(c *echo.Context) http.ResponseWriter { return c.Response() },
		Committed: func(c *echo.Context) bool {
			response, err := echo.UnwrapResponse(c.Response())
			return err == nil && response.Committed
		},
		Writer: func(c *echo.Context) http.ResponseWriter { return c.Response().(*echo.Response).ResponseWriter },
		Wrap: func(c *echo.Context, in func(http.ResponseWriter) http.ResponseWriter) func() {
			w := c.Response()
			c.SetResponse(in(w))
			return func() { c.SetResponse(w) }
		},
	})
}

// app is an [echotest.App].
type app struct{ *echo.Echo }

func (a app) Pre(m echotest.Middleware[*echo.Context]) { a.Echo.Pre(own(m)) }
func (a app) Use(m echotest.Middleware[*echo.Context]) { a.Echo.Use(own(m)) }

func (a app) Add(method, path string, h echotest.Handler[*echo.Context], m ...echotest.Middleware[*echo.Context]) {
	var all []echo.MiddlewareFunc
	for _, m := range m {
		all = append(all, own(m))
	}
	a.Echo.Add(method, path, h, all...)
}

func (a app) AddToGroup(prefix string, of echotest.Middleware[*echo.Context], method, path string, h echotest.Handler[*echo.Context]) {
	a.Group(prefix, own(of)).Add(method, path, h)
}

func (a app) OnError(f func(*echo.Context, error)) {
	a.HTTPErrorHandler = f
}

func own(m echotest.Middleware[*echo.Context]) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc { return m(next) }
}

func plain(m echo.MiddlewareFunc) echotest.Middleware[*echo.Context] {
	return func(next echotest.Handler[*echo.Context]) echotest.Handler[*echo.Context] { return m(next) }
}
