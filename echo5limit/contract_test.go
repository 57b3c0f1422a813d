package echo5limit_test

import (
	"context"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/echo5limit"
	"github.com/neap-go/neap/internal/gatefake"
)

func TestContract(t *testing.T) {
	t.Parallel()
	gatetest.Run(t, gatetest.Driver{
		Redis: gatefake.Redis,
		Serve: serve,
		Key: func(header string) gate.Key {
			return echo5limit.Key(func(c *echo.Context) (string, error) {
				if value := c.Request().Header.Get(header); value != "" {
					return value, nil
				}
				return "", gatetest.ErrNoHeader
			})
		},
		Native: func(q gate.Request, header string) (string, bool) {
			c, ok := echo5limit.Context(q)
			if !ok {
				return "", false
			}
			return c.Request().Header.Get(header), true
		},
		Errors:     gatetest.ErrorsInside,
		Hijack:     true,
		Disconnect: true,
	})
}

func serve(t testing.TB, app gatetest.App) string {
	e := echo.New()
	if app.OnError != nil {
		e.HTTPErrorHandler = func(c *echo.Context, err error) {
			if !committed(c) { // as Echo asks of error handlers
				app.OnError(exchange{c}, err)
			}
		}
	}
	e.Use(recovered)
	e.Use(around(app.Around)...)
	e.Use(gates(app.Gates)...)
	for _, route := range app.Routes {
		handler := func(c *echo.Context) error { return route.Handler(exchange{c}) }
		if route.Endpoint != nil {
			handler = echo5limit.Handler(route.Endpoint)
		}
		path := strings.NewReplacer("{...}", "*", "{", ":", "}", "").Replace(route.Pattern)
		middleware := append(around(route.Around), gates(route.Gates)...)
		e.Add(route.Method, path, handler, middleware...)
		if route.Method == http.MethodGet {
			e.HEAD(path, handler, middleware...)
		}
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func gates(gs []gate.Gate) (ms []echo.MiddlewareFunc) {
	for _, g := range gs {
		ms = append(ms, echo5limit.Middleware(g))
	}
	return ms
}

func around(ms []gatetest.Middleware) (out []echo.MiddlewareFunc) {
	for _, m := range ms {
		out = append(out, func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				return m(exchange{c}, func() error { return next(c) })
			}
		})
	}
	return out
}

func recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) (err error) {
		defer func() {
			if recover() != nil && !committed(c) {
				err = c.String(http.StatusInternalServerError, gatetest.Recovered)
			}
		}()
		return next(c)
	}
}

func committed(c *echo.Context) bool {
	response, err := echo.UnwrapResponse(c.Response())
	return err == nil && response.Committed
}

type exchange struct{ c *echo.Context }

func (x exchange) Context() context.Context       { return x.c.Request().Context() }
func (x exchange) SetContext(ctx context.Context) { x.c.SetRequest(x.c.Request().WithContext(ctx)) }
func (x exchange) Param(name string) string       { return x.c.Param(name) }
func (x exchange) Query(name string) string       { return x.c.QueryParam(name) }
func (x exchange) Value(key string) any           { return x.c.Get(key) }
func (x exchange) SetValue(key string, value any) { x.c.Set(key, value) }
func (x exchange) Body() ([]byte, error)          { return io.ReadAll(x.c.Request().Body) }
func (x exchange) ContentLength() int64           { return x.c.Request().ContentLength }
func (x exchange) SetHeader(name, value string)   { x.c.Response().Header().Set(name, value) }
func (x exchange) AddHeader(name, value string)   { x.c.Response().Header().Add(name, value) }

func (x exchange) SetPeer(address string)              { x.c.Request().RemoteAddr = address }
func (x exchange) SetRequestHeader(name, value string) { x.c.Request().Header.Set(name, value) }
func (x exchange) DelRequestHeader(name string)        { x.c.Request().Header.Del(name) }

func (x exchange) Rewrite(path string) {
	u := x.c.Request().URL
	u.Path, u.RawPath = path, ""
}

func (x exchange) Send(status int, body string) error {
	x.c.Response().WriteHeader(status)
	if body != "" {
		_, err := io.WriteString(x.c.Response(), body)
		return err
	}
	return nil
}

func (x exchange) Stream(status int, chunks iter.Seq[string]) error {
	x.c.Response().WriteHeader(status)
	for chunk := range chunks {
		_, _ = io.WriteString(x.c.Response(), chunk)
		_ = http.NewResponseController(x.c.Response()).Flush()
	}
	return nil
}

func (x exchange) Hijack(talk func(net.Conn)) error {
	conn, _, err := http.NewResponseController(x.c.Response()).Hijack()
	if err == nil {
		defer conn.Close()
		talk(conn)
	}
	return err
}
