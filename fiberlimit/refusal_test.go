package fiberlimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/compress"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/internal/gatefake"
)

// refusing is a gate that refuses with a 409.
var refusing = gatefake.Func(func(gate.Request) gate.Pass {
	return gate.Pass{Reply: &gate.Reply{Status: 409, Refused: true, Body: []byte(strings.Repeat("refused ", 100))}}
})

// serveOwn serves a request of the handler's own, as a batch does.
func serveOwn(app *fiber.App, c *fiber.Ctx, path string) {
	whole := string(c.Request().RequestURI())
	c.Request().SetRequestURI(path)
	app.Handler()(c.Context())
	c.Request().SetRequestURI(whole)
}

// A refusal is told from an answer of a handler that was refused something itself,
// though the two have one status.
func TestRefusalOrAnswer(t *testing.T) {
	t.Parallel()
	const again = "the same answer"
	for name, c := range map[string]struct {
		handlers func(app *fiber.App) []fiber.Handler
		refused  bool
	}{
		"Refused": {func(*fiber.App) []fiber.Handler {
			return []fiber.Handler{fiberlimit.Middleware(refusing)}
		}, true},
		"Compressed": {func(*fiber.App) []fiber.Handler {
			return []fiber.Handler{compress.New(), fiberlimit.Middleware(refusing)}
		}, true},
		"PartRefused": {func(app *fiber.App) []fiber.Handler {
			return []fiber.Handler{func(c *fiber.Ctx) error {
				serveOwn(app, c, "/refused")
				c.Response().Reset()
				return c.Status(409).SendString("one of the parts was refused")
			}}
		}, false},
		"Replaced": {func(*fiber.App) []fiber.Handler {
			return []fiber.Handler{func(c *fiber.Ctx) error {
				_ = c.Next()
				return c.Status(409).SendString("done in another way")
			}, fiberlimit.Middleware(refusing)}
		}, false},
		"NextPartAdmitted": {func(app *fiber.App) []fiber.Handler {
			return []fiber.Handler{func(c *fiber.Ctx) error {
				serveOwn(app, c, "/again")
				c.Response().Reset()
				serveOwn(app, c, "/admitted")
				return nil
			}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := fiber.New(fiber.Config{DisableStartupMessage: true})
			l := &gatefake.Leaving{T: t}
			app.Post("/", append([]fiber.Handler{fiberlimit.Middleware(l)}, c.handlers(app)...)...)
			app.Post("/refused", fiberlimit.Middleware(refusing))
			app.Post("/again", fiberlimit.Middleware(gatefake.Func(func(gate.Request) gate.Pass {
				return gate.Pass{Reply: &gate.Reply{Status: 409, Refused: true, Body: []byte(again)}}
			})))
			app.Post("/admitted", fiberlimit.Middleware(gatefake.Func(func(gate.Request) gate.Pass { return gate.Pass{} })),
				func(c *fiber.Ctx) error { return c.Status(409).SendString(again) })
			got := answered(t, listening(t, app), "POST / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nContent-Length: 0\r\n\r\n")
			if !strings.HasPrefix(got, "409 ") || l.Reply == nil || l.Reply.Refused != c.refused {
				t.Errorf("got %q, and the gate outside %+v, want a refusal: %t", got, l.Reply, c.refused)
			}
		})
	}
}

// A handler that has worked, and was refused a part of it, does not run again
// under its key.
func TestIdempotentBatchRunsOnce(t *testing.T) {
	t.Parallel()
	guard, err := idempotency.New(gatefake.Redis(t), "batch", &idempotency.Options{Budget: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/refused", fiberlimit.Middleware(refusing))
	app.Post("/batch", fiberlimit.Middleware(gate.Idempotent(guard, gate.Everyone, nil)), func(c *fiber.Ctx) error {
		runs++
		serveOwn(app, c, "/refused")
		c.Response().Reset()
		return c.Status(409).SendString("some of it was refused")
	})
	address := listening(t, app)
	for range 2 {
		got := answered(t, address, "POST /batch HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\nContent-Length: 0\r\n\r\n")
		if got != "409 some of it was refused" {
			t.Errorf("got %q, want \"409 some of it was refused\"", got)
		}
	}
	if runs != 1 {
		t.Errorf("it ran %d times, want once", runs)
	}
}
