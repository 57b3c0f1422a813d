package fiber3limit_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/fiber3limit"
	"github.com/neap-go/neap/internal/gatefake"
)

// TestEnd: c.End sends the response while the handler runs. If it was a stream, nothing is
// left of it, and a gate is told that it has only a part.
func TestEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send    func(c fiber.Ctx) error
		body    string
		partial bool
	}{
		"Body":       {func(c fiber.Ctx) error { return c.SendString("one two") }, "one two", false},
		"Stream":     {func(c fiber.Ctx) error { return c.SendStream(strings.NewReader("one two")) }, "", true},
		"LongStream": {func(c fiber.Ctx) error { return c.SendStream(strings.NewReader("one two"), 7) }, "", true},
		"Nothing":    {func(c fiber.Ctx) error { return nil }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := make(chan *gate.Reply, 1)
			app := fiber.New()
			app.Get("/", fiber3limit.Middleware(gatefake.Func(func(gate.Request) gate.Pass {
				return gate.Pass{Capture: 10, Leave: func(r *gate.Reply) { left <- r }}
			})), func(ctx fiber.Ctx) error {
				if err := c.send(ctx); err != nil {
					return err
				}
				return ctx.End()
			})
			_, _ = app.Test(httptest.NewRequest("GET", "/", nil), fiber.TestConfig{Timeout: time.Minute}) // it has a connection that may be closed
			if r := <-left; string(r.Body) != c.body || r.Partial != c.partial {
				t.Errorf("the gate was told of %q, partial %v, want %q, %v", r.Body, r.Partial, c.body, c.partial)
			}
		})
	}
}
