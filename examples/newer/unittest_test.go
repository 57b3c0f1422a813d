package newer

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/echo5limit"
	"github.com/neap-go/neap/fiber3limit"
	"github.com/neap-go/neap/neaptest"
)

// sends make a neaptest.Send of a guarded order on each framework.
var sends = map[string]func(g gate.Gate, work *neaptest.Work) neaptest.Send{
	"echo5": func(g gate.Gate, work *neaptest.Work) neaptest.Send {
		e := echo.New()
		e.POST("/orders", func(c *echo.Context) error {
			defer work.Begin()()
			return c.String(http.StatusCreated, "booked")
		}, echo5limit.Middleware(g))
		return neaptest.Handler(e)
	},
	"fiber3": func(g gate.Gate, work *neaptest.Work) neaptest.Send {
		app := fiber.New()
		app.Post("/orders", fiber3limit.Middleware(g), func(c fiber.Ctx) error {
			defer work.Begin()()
			return c.Status(http.StatusCreated).SendString("booked")
		})
		return func(r *http.Request) (*http.Response, error) { return app.Test(r, fiber.TestConfig{}) }
	},
}

// TestUnitTests has two instances on each framework run an order once, in a bubble.
func TestUnitTests(t *testing.T) {
	t.Parallel()
	order := func() *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":"phone"}`))
		r.Header.Set("Idempotency-Key", "order-17")
		return r
	}
	for name, send := range sends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if response, err := send(gate.Chain(), new(neaptest.Work))(order()); err != nil || response.StatusCode != http.StatusCreated {
				t.Fatalf("outside of a bubble: got %v, %v, want 201", response, err)
			}
			synctest.Test(t, func(t *testing.T) {
				redis := neaptest.New(t)
				var work neaptest.Work
				var instances []neaptest.Send
				for range 2 {
					guard, err := idempotency.New(redis.Client(), "orders", nil)
					if err != nil {
						t.Fatal(err)
					}
					instances = append(instances, send(gate.Idempotent(guard, gate.Everyone, nil), &work))
				}
				neaptest.AssertRunsOnce(t, &work, order, instances...)
			})
		})
	}
}
