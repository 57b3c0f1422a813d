package newer

import (
	"io"
	"maps"
	"net"
	"testing"

	"github.com/cloudwego/hertz/pkg/common/hlog"
	"github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/echo5limit"
	"github.com/neap-go/neap/fiber3limit"
	"github.com/neap-go/neap/internal/fleet"
)

// seven are all frameworks: here the server of Fiber v2 is the fasthttp of Fiber v3.
var seven = fleet.Fleet{
	"echo5": {
		Instance: func(tb testing.TB, g gate.Gate, do fleet.Work) string {
			e := echo.New()
			e.POST("/orders/:id", func(c *echo.Context) error {
				status, body := do(c.Request().Context(), c.Response().Header().Add)
				c.Response().WriteHeader(status)
				_, err := io.WriteString(c.Response(), body)
				return err
			}, echo5limit.Middleware(g))
			return fleet.Served(tb, e)
		},
		Endpoint: func(tb testing.TB, e gate.Endpoint) string {
			app := echo.New()
			app.POST("/orders/:id", echo5limit.Handler(e))
			return fleet.Served(tb, app)
		},
	},
	"fiber3": {
		Instance: func(tb testing.TB, g gate.Gate, do fleet.Work) string {
			app := fiber.New()
			app.Post("/orders/:id", fiber3limit.Middleware(g), func(c fiber.Ctx) error {
				status, body := do(c.Context(), c.Response().Header.Add)
				return c.Status(status).SendString(body)
			})
			return listening(tb, app)
		},
		Endpoint: func(tb testing.TB, e gate.Endpoint) string {
			app := fiber.New()
			app.Post("/orders/:id", fiber3limit.Handler(e))
			return listening(tb, app)
		},
	},
	"hertz": hertz,
}

func listening(tb testing.TB, app *fiber.App) (address string) {
	tb.Helper()
	return fleet.Listening(tb, func(ln net.Listener) error {
		return app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true})
	}, app.ShutdownWithContext)
}

func TestMain(m *testing.M) {
	warmFiber()
	hlog.SetLevel(hlog.LevelError) // Hertz logs each server
	maps.Copy(seven, fleet.Four)
	seven.Main(m)
}

func TestFleet(t *testing.T) {
	t.Parallel()
	if len(seven) != 7 {
		t.Errorf("got %d frameworks, want 7", len(seven))
	}
	seven.Test(t)
}
