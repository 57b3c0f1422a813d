// Package fleet tests what holds across the frameworks: instances of one
// service behind different ones, beside each other.
package fleet

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	redistest.RunChild(map[string]func(words []string){"callback": callbackChild})
	redistest.Main(m)
}

// work is what the handler of POST /orders/{id} does, in any framework: it
// adds lines of header, and returns a status and a body.
type work func(ctx context.Context, add func(name, value string)) (status int, body string)

// instances serve POST /orders/{id}, each behind its framework's adapter.
var instances = map[string]func(t testing.TB, g gate.Gate, do work) (address string){
	"nethttp": func(t testing.TB, g gate.Gate, do work) string {
		mux := http.NewServeMux()
		mux.Handle("POST /orders/{id}", nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, body := do(r.Context(), w.Header().Add)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})))
		return served(t, mux)
	},
	"gin": func(t testing.TB, g gate.Gate, do work) string {
		engine := gin.New()
		engine.UseEscapedPath = true
		engine.POST("/orders/:id", ginlimit.Middleware(g), func(c *gin.Context) {
			status, body := do(c.Request.Context(), c.Writer.Header().Add)
			c.String(status, "%s", body)
		})
		return served(t, engine)
	},
	"echo": func(t testing.TB, g gate.Gate, do work) string {
		e := echo.New()
		e.POST("/orders/:id", func(c echo.Context) error {
			status, body := do(c.Request().Context(), c.Response().Header().Add)
			c.Response().WriteHeader(status)
			_, err := io.WriteString(c.Response(), body)
			return err
		}, echolimit.Middleware(g))
		return served(t, e)
	},
	"fiber": func(t testing.TB, g gate.Gate, do work) string {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Post("/orders/:id", fiberlimit.Middleware(g), func(c *fiber.Ctx) error {
			status, body := do(c.UserContext(), c.Response().Header.Add)
			return c.Status(status).SendString(body)
		})
		return listening(t, app)
	},
}

// endpoints serve POST /orders/{id} by an endpoint, each with its framework's adapter.
var endpoints = map[string]func(t testing.TB, e gate.Endpoint) (address string){
	"nethttp": func(t testing.TB, e gate.Endpoint) string {
		mux := http.NewServeMux()
		mux.Handle("POST /orders/{id}", nethttp.Handler(e))
		return served(t, mux)
	},
	"gin": func(t testing.TB, e gate.Endpoint) string {
		engine := gin.New()
		engine.POST("/orders/:id", ginlimit.Handler(e))
		return served(t, engine)
	},
	"echo": func(t testing.TB, e gate.Endpoint) string {
		app := echo.New()
		app.POST("/orders/:id", echolimit.Handler(e))
		return served(t, app)
	},
	"fiber": func(t testing.TB, e gate.Endpoint) string {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Post("/orders/:id", fiberlimit.Handler(e))
		return listening(t, app)
	},
}

// frameworks are the names of the instances.
var frameworks = slices.Sorted(maps.Keys(instances))

func listening(t testing.TB, app *fiber.App) (address string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(ln) }()
	t.Cleanup(func() {
		_ = app.ShutdownWithTimeout(time.Second)
		_ = ln.Close()
	})
	return ln.Addr().String()
}

func served(t testing.TB, h http.Handler) (address string) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// answer is a response but for what belongs to one connection, or moment.
type answer struct {
	status int
	lines  string
	body   string
}

// order posts to an instance.
func order(address, target, key, body string) (answer, error) {
	return post(address, target, body, "Idempotency-Key", key, "X-Account", "alice", "Content-Type", "application/json")
}

// client has connections of its own: each httptest.Server that ends closes those of
// http.DefaultClient, also for a request that is about to be sent.
var client = &http.Client{Transport: &http.Transport{}}

func post(address, target, body string, header ...string) (answer, error) {
	r, err := http.NewRequest(http.MethodPost, "http://"+address+target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	response, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(response.Header)) {
		if !slices.Contains([]string{"Connection", "Content-Length", "Date", "Server"}, name) {
			lines.WriteString(name + ": " + strings.Join(response.Header[name], " | ") + "\n")
		}
	}
	return answer{response.StatusCode, lines.String(), string(all)}, err
}
