package fleet

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/nethttp"
)

// Four are the frameworks of this module.
var Four = Fleet{
	"nethttp": {
		Instance: func(tb testing.TB, g gate.Gate, do Work) string {
			mux := http.NewServeMux()
			mux.Handle("POST /orders/{id}", nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				status, body := do(r.Context(), w.Header().Add)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			})))
			return Served(tb, mux)
		},
		Endpoint: func(tb testing.TB, e gate.Endpoint) string {
			mux := http.NewServeMux()
			mux.Handle("POST /orders/{id}", nethttp.Handler(e))
			return Served(tb, mux)
		},
	},
	"gin": {
		Instance: func(tb testing.TB, g gate.Gate, do Work) string {
			engine := gin.New()
			engine.UseEscapedPath = true
			engine.POST("/orders/:id", ginlimit.Middleware(g), func(c *gin.Context) {
				status, body := do(c.Request.Context(), c.Writer.Header().Add)
				c.String(status, "%s", body)
			})
			return Served(tb, engine)
		},
		Endpoint: func(tb testing.TB, e gate.Endpoint) string {
			engine := gin.New()
			engine.POST("/orders/:id", ginlimit.Handler(e))
			return Served(tb, engine)
		},
	},
	"echo": {
		Instance: func(tb testing.TB, g gate.Gate, do Work) string {
			e := echo.New()
			e.POST("/orders/:id", func(c echo.Context) error {
				status, body := do(c.Request().Context(), c.Response().Header().Add)
				c.Response().WriteHeader(status)
				_, err := io.WriteString(c.Response(), body)
				return err
			}, echolimit.Middleware(g))
			return Served(tb, e)
		},
		Endpoint: func(tb testing.TB, e gate.Endpoint) string {
			app := echo.New()
			app.POST("/orders/:id", echolimit.Handler(e))
			return Served(tb, app)
		},
	},
	"fiber": {
		Instance: func(tb testing.TB, g gate.Gate, do Work) string {
			app := fiber.New(fiber.Config{DisableStartupMessage: true})
			app.Post("/orders/:id", fiberlimit.Middleware(g), func(c *fiber.Ctx) error {
				status, body := do(c.UserContext(), c.Response().Header.Add)
				return c.Status(status).SendString(body)
			})
			return Listening(tb, app.Listener, app.ShutdownWithContext)
		},
		Endpoint: func(tb testing.TB, e gate.Endpoint) string {
			app := fiber.New(fiber.Config{DisableStartupMessage: true})
			app.Post("/orders/:id", fiberlimit.Handler(e))
			return Listening(tb, app.Listener, app.ShutdownWithContext)
		},
	},
}

// Listening serves by a framework's own server.
func Listening(
	tb testing.TB, serve func(net.Listener) error, shutdown func(context.Context) error,
) (address string) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	go func() { _ = serve(ln) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = shutdown(ctx)
		_ = ln.Close()
	})
	return ln.Addr().String()
}

// Served serves by net/http.
func Served(tb testing.TB, h http.Handler) (address string) {
	tb.Helper()
	server := httptest.NewServer(h)
	tb.Cleanup(server.Close)
	return server.Listener.Addr().String()
}
