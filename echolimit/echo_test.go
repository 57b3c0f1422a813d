package echolimit_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/internal/gatehttp/echotest"
)

func TestEcho(t *testing.T) {
	t.Parallel()
	echotest.Run(t, echotest.Driver[echo.Context]{
		New: func() echotest.App[echo.Context] {
			e := echo.New()
			e.Logger.SetOutput(io.Discard)
			return app{e}
		},
		Middleware: func(g gate.Gate) echotest.Middleware[echo.Context] { return plain(echolimit.Middleware(g)) },
		Handler:    func(e gate.Endpoint) echotest.Handler[echo.Context] { return echolimit.Handler(e) },
		Key:        echolimit.Key,
		Context:    echolimit.Context,
		Response:   func(c echo.Context) http.ResponseWriter { return c.Response() },
		Committed:  func(c echo.Context) bool { return c.Response().Committed },
		Writer:     func(c echo.Context) http.ResponseWriter { return c.Response().Writer },
		Wrap: func(c echo.Context, in func(http.ResponseWriter) http.ResponseWriter) func() {
			response, w := c.Response(), c.Response().Writer
			response.Writer = in(w)
			return func() { response.Writer = w }
		},
	})
}

// app is an [echotest.App].
type app struct{ *echo.Echo }

func (a app) Pre(m echotest.Middleware[echo.Context]) { a.Echo.Pre(own(m)) }
func (a app) Use(m echotest.Middleware[echo.Context]) { a.Echo.Use(own(m)) }

func (a app) Add(method, path string, h echotest.Handler[echo.Context], m ...echotest.Middleware[echo.Context]) {
	var all []echo.MiddlewareFunc
	for _, m := range m {
		all = append(all, own(m))
	}
	a.Echo.Add(method, path, h, all...)
}

func (a app) AddToGroup(prefix string, of echotest.Middleware[echo.Context], method, path string, h echotest.Handler[echo.Context]) {
	a.Group(prefix, own(of)).Add(method, path, h)
}

func (a app) OnError(f func(echo.Context, error)) {
	a.HTTPErrorHandler = func(err error, c echo.Context) { f(c, err) }
}

func own(m echotest.Middleware[echo.Context]) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc { return m(next) }
}

func plain(m echo.MiddlewareFunc) echotest.Middleware[echo.Context] {
	return func(next echotest.Handler[echo.Context]) echotest.Handler[echo.Context] { return m(next) }
}
