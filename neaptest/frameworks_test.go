package neaptest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/ginlimit"
)

// warmFiber has fasthttp start the goroutine that never ends, outside of any bubble.
func warmFiber() {
	response, err := fiber.New().Test(httptest.NewRequest("GET", "/", nil), -1)
	if err != nil {
		panic(err)
	}
	response.Body.Close()
}

// frameworks serve a limit and a guarded order, each by its framework.
var frameworks = map[string]func(limited, guarded gate.Gate, work *Work) Send{
	"fiber": func(limited, guarded gate.Gate, work *Work) Send {
		app := fiber.New()
		app.Post("/orders", fiberlimit.Middleware(limited), fiberlimit.Middleware(guarded), func(c *fiber.Ctx) error {
			defer work.Begin()()
			return c.SendString("booked")
		})
		return func(r *http.Request) (*http.Response, error) { return app.Test(r, -1) }
	},
	"gin": func(limited, guarded gate.Gate, work *Work) Send {
		gin.SetMode(gin.ReleaseMode)
		app := gin.New()
		app.POST("/orders", ginlimit.Middleware(limited), ginlimit.Middleware(guarded), func(c *gin.Context) {
			defer work.Begin()()
			c.String(200, "booked")
		})
		return Handler(app)
	},
	"echo": func(limited, guarded gate.Gate, work *Work) Send {
		app := echo.New()
		app.POST("/orders", func(c echo.Context) error {
			defer work.Begin()()
			return c.String(200, "booked")
		}, echolimit.Middleware(limited), echolimit.Middleware(guarded))
		return Handler(app)
	},
}

// TestEachFramework has two instances on each framework run an order once, within their limit.
func TestEachFramework(t *testing.T) {
	t.Parallel()
	for name, serve := range frameworks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, r *Redis) {
				var work Work
				var instances []Send
				for range 2 {
					rdb := r.Client()
					limited := gate.RateLimit(limiter(t, rdb, 12, store.FailClosed), everybody, nil)
					instances = append(instances, serve(limited, gate.Idempotent(guard(t, rdb), gate.Everyone, nil), &work))
				}
				AssertRunsOnce(t, &work, order, instances...)
				Routes(t, r, instances[0], nil, "POST /orders")
				AssertLimited(t, 1, order, instances...) // eleven of twelve are taken
			})
		})
	}
}
