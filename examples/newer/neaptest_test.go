package newer

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/echo5limit"
	"github.com/neap-go/neap/fiber3limit"
	"github.com/neap-go/neap/neaptest"
)

// apps are the same shop, and the routes that its router tells. An order takes longer than Fiber's Test
// waits by itself.
var apps = map[string]func(limited, once gate.Gate, work *neaptest.Work) (neaptest.Send, []string){
	"echo5": func(limited, once gate.Gate, work *neaptest.Work) (neaptest.Send, []string) {
		e := echo.New()
		g := e.Group("", echo5limit.Middleware(limited))
		g.GET("/orders/:id", func(c *echo.Context) error { return c.String(http.StatusOK, c.Param("id")) })
		g.POST("/orders", func(c *echo.Context) error {
			defer work.Begin()()
			time.Sleep(2 * time.Second)
			return c.String(http.StatusCreated, "booked")
		}, echo5limit.Middleware(once))
		var routes []string
		for _, r := range e.Router().Routes() {
			if r.Method != echo.RouteNotFound {
				routes = append(routes, r.Method+" "+r.Path)
			}
		}
		return neaptest.Handler(e), routes
	},
	"fiber3": func(limited, once gate.Gate, work *neaptest.Work) (neaptest.Send, []string) {
		app := fiber.New()
		app.Use(fiber3limit.Middleware(limited))
		app.Get("/orders/:id", func(c fiber.Ctx) error { return c.SendString(c.Params("id")) })
		app.Post("/orders", fiber3limit.Middleware(once), func(c fiber.Ctx) error {
			defer work.Begin()()
			time.Sleep(2 * time.Second)
			return c.Status(http.StatusCreated).SendString("booked")
		})
		var routes []string
		for _, r := range app.GetRoutes(true) {
			routes = append(routes, r.Method+" "+r.Path)
		}
		return func(r *http.Request) (*http.Response, error) { return app.Test(r, fiber.TestConfig{}) }, routes
	},
}

// warmFiber has fasthttp start its goroutine for the process outside of any bubble.
func warmFiber() {
	response, err := fiber.New().Test(httptest.NewRequest(http.MethodGet, "/", nil), fiber.TestConfig{})
	if err != nil {
		panic(err)
	}
	response.Body.Close()
}

func order() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":"tea"}`))
	r.Header.Set("Idempotency-Key", "order-17")
	return r
}

// TestUnitTests are those that the documentation of neaptest promises for these frameworks.
func TestUnitTests(t *testing.T) {
	t.Parallel()
	for name, app := range apps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				redis := neaptest.New(t)
				rdb := redis.Client()
				limiter, err := limit.New(rdb, "api", []limit.Policy{limit.FixedWindow{Limit: 100, Window: time.Hour}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				guard, err := idempotency.New(rdb, "orders", idempotency.Retry{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				var work neaptest.Work
				send, routes := app(gate.RateLimit(limiter, gate.ByIP(nil), nil), gate.Idempotent(guard, gate.Everyone, nil), &work)
				neaptest.AssertRunsOnce(t, &work, order, send)
				if want := []string{"GET /orders/:id", "POST /orders"}; !slices.Equal(slices.Sorted(slices.Values(routes)), want) {
					t.Errorf("got the routes %q, want %q", routes, want)
				}
				neaptest.Routes(t, redis, send, nil, routes...)
			})
		})
	}
}
