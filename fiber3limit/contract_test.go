package fiber3limit_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/fiber3limit"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/internal/gatefiber/fibertest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	d := driver(fiber.Config{})
	d.BodyFirst = true
	gatetest.Run(t, d)
}

// With StreamRequestBody handlers run before the body has arrived.
func TestContractStreamingBodies(t *testing.T) {
	t.Parallel()
	d := driver(fiber.Config{StreamRequestBody: true})
	d.BodyFirst = true // up to a few KiB, and what is longer has cases in fibertest
	gatetest.Run(t, d)
}

func TestFasthttp(t *testing.T) { //nolint:paralleltest // Run calls Parallel, after a case that runs alone
	fibertest.Run(t, fibertest.Driver{
		Serve: func(t testing.TB, c fibertest.Config, app gatetest.App) string {
			config := fiber.Config{
				StreamRequestBody: c.StreamRequestBody, DisableHeaderNormalizing: c.DisableHeaderNormalizing,
				ReduceMemoryUsage: c.ReduceMemoryUsage, DisablePreParseMultipartForm: c.DisablePreParseMultipartForm,
				UnescapePath: c.UnescapePath, BodyLimit: c.BodyLimit,
			}
			if c.TrustLoopback {
				config.TrustProxy, config.TrustProxyConfig = true, fiber.TrustProxyConfig{Loopback: true}
			}
			if c.ErrorHandler != nil {
				config.ErrorHandler = func(_ fiber.Ctx, err error) error { return c.ErrorHandler(err) }
			}
			server := mounted(config, app)
			server.Server().HeaderReceived = c.HeaderReceived
			return listening(t, server)
		},
		RequestCtx: func(x gatetest.Exchange) *fasthttp.RequestCtx { return x.(exchange).Ctx },
		Again:      func(x gatetest.Exchange) { native(x).App().Handler()(native(x).RequestCtx()) },
		Hostname:   func(x gatetest.Exchange) string { return native(x).Hostname() },
		Params:     func(x gatetest.Exchange) []string { return native(x).Route().Params },
		Key: func(f func(*fasthttp.RequestCtx) (string, error)) gate.Key {
			return fiber3limit.Key(func(c fiber.Ctx) (string, error) { return f(c.RequestCtx()) })
		},
		DropTrailers: func(x gatetest.Exchange, _ func() error) error { return fiber3limit.DropTrailers(native(x)) },
		Streams: map[string]func(gatetest.Exchange, io.Reader, int) error{
			"SendStream": func(x gatetest.Exchange, stream io.Reader, length int) error {
				return native(x).SendStream(stream, length)
			},
			"SendStream/NoLength": func(x gatetest.Exchange, stream io.Reader, _ int) error {
				return native(x).SendStream(stream)
			},
			"SendStreamWriter": func(x gatetest.Exchange, stream io.Reader, _ int) error {
				return native(x).SendStreamWriter(func(w *bufio.Writer) { _, _ = io.Copy(w, stream) })
			},
		},
		Files: map[string]func(gatetest.Exchange, string) error{
			"SendFile": func(x gatetest.Exchange, path string) error { return native(x).SendFile(path) },
		},
		Test: func(t testing.TB, app gatetest.App, r *http.Request) *http.Response {
			t.Helper()
			response, err := mounted(fiber.Config{}, app).Test(r, fiber.TestConfig{})
			if err != nil {
				t.Fatal(err)
			}
			return response
		},
	})
}

func driver(config fiber.Config) gatetest.Driver {
	return gatetest.Driver{
		Redis: gatefake.Redis,
		Serve: func(t testing.TB, app gatetest.App) string { return listening(t, mounted(config, app)) },
		Key: func(header string) gate.Key {
			return fiber3limit.Key(func(c fiber.Ctx) (string, error) {
				if value := c.Get(header); value != "" {
					return value, nil
				}
				return "", gatetest.ErrNoHeader
			})
		},
		Native: func(q gate.Request, header string) (string, bool) {
			c, ok := fiber3limit.Context(q)
			if !ok {
				return "", false
			}
			return c.Get(header), true
		},
		Pooled: func(x gatetest.Exchange) context.Context { return native(x).RequestCtx() },
		Errors: gatetest.ErrorsInside,
		Hijack: true,

		RefusedTrailers: []string{"Content-Type", "Cookie", "X-Forwarded-For"},
	}
}

// mounted is an application of Fiber's.
func mounted(config fiber.Config, app gatetest.App) *fiber.App {
	if app.OnError != nil {
		config.ErrorHandler = func(c fiber.Ctx, err error) error {
			app.OnError(exchangeOf(c), err)
			return nil
		}
	}
	server := fiber.New(config)
	server.Use(recovered)
	for _, h := range append(around(app.Around), gates(app.Gates)...) {
		server.Use(h)
	}
	for _, route := range app.Routes {
		handlers := append(around(route.Around), gates(route.Gates)...)
		if route.Endpoint != nil {
			handlers = append(handlers, fiber3limit.Handler(route.Endpoint))
		} else {
			handlers = append(handlers, func(c fiber.Ctx) error { return route.Handler(exchangeOf(c)) })
		}
		path := fibertest.Path(route.Pattern)
		server.Add([]string{route.Method}, path, handlers[0], handlers[1:]...) // HEAD with GET
	}
	return server
}

func listening(t testing.TB, app *fiber.App) (address string) {
	return fibertest.Listen(t, func(ln net.Listener) error {
		return app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true})
	}, app.ShutdownWithTimeout)
}

func gates(gs []gate.Gate) (hs []any) {
	for _, g := range gs {
		hs = append(hs, fiber3limit.Middleware(g))
	}
	return hs
}

func around(ms []gatetest.Middleware) (hs []any) {
	for _, m := range ms {
		hs = append(hs, func(c fiber.Ctx) error { return m(exchangeOf(c), c.Next) })
	}
	return hs
}

func recovered(c fiber.Ctx) (err error) {
	defer func() {
		if recover() != nil {
			err = c.Status(fiber.StatusInternalServerError).SendString(gatetest.Recovered)
		}
	}()
	return c.Next()
}

type exchange struct {
	fibertest.Exchange

	c fiber.Ctx
}

func exchangeOf(c fiber.Ctx) exchange { return exchange{fibertest.Exchange{Ctx: c.RequestCtx()}, c} }

func native(x gatetest.Exchange) fiber.Ctx { return x.(exchange).c }

func (x exchange) Context() context.Context       { return x.c.Context() }
func (x exchange) SetContext(ctx context.Context) { x.c.SetContext(ctx) }
func (x exchange) Param(name string) string       { return x.c.Params(name) }
func (x exchange) Query(name string) string       { return x.c.Query(name) }
func (x exchange) Value(key string) any           { return x.c.Locals(key) }
func (x exchange) SetValue(key string, value any) { x.c.Locals(key, value) }

func (x exchange) Send(status int, body string) error {
	return x.c.Status(status).SendString(body)
}
