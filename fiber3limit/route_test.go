package fiber3limit_test

import (
	"io"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/fiber3limit"
	"github.com/neap-go/neap/internal/gatefake"
)

// routeAndID is what a gate knows about the route and about its parameter id.
func routeAndID(q gate.Request) string { return q.Route() + " " + q.Param("id") }

func TestWhereTheRouteIsKnown(t *testing.T) {
	t.Parallel()
	ok := func(c fiber.Ctx) error { return c.SendString("ok") }
	const known, unknown = "/users/{id} 7", " "
	for _, c := range []struct {
		name, want string
		mount      func(app *fiber.App, noting fiber.Handler)
	}{
		{"Use", unknown, func(app *fiber.App, noting fiber.Handler) { app.Use(noting).Get("/users/:id", ok) }},
		{"UsePrefix", unknown, func(app *fiber.App, noting fiber.Handler) {
			app.Use("/users/:id", noting).Get("/users/:id", ok)
		}},
		{"UseOfAGroup", unknown, func(app *fiber.App, noting fiber.Handler) {
			app.Group("/users").Use(noting)
			app.Get("/users/:id", ok)
		}},
		{"HandlerOfAGroup", unknown, func(app *fiber.App, noting fiber.Handler) {
			app.Group("/users", noting).Get("/:id", ok)
		}},
		{"UseOfAMountedApp", unknown, func(app *fiber.App, noting fiber.Handler) {
			sub := fiber.New()
			sub.Use(noting).Get("/:id", ok)
			app.Use("/users", sub)
		}},
		{"UseAfterRoutes", unknown, func(app *fiber.App, noting fiber.Handler) {
			app.Get("/other", ok).Use(noting, ok)
		}},
		{"Route", known, func(app *fiber.App, noting fiber.Handler) { app.Get("/users/:id", noting, ok) }},
		{"AllMethods", known, func(app *fiber.App, noting fiber.Handler) { app.All("/users/:id", noting, ok) }},
		{"RouteOfAGroup", known, func(app *fiber.App, noting fiber.Handler) {
			app.Group("/users").Get("/:id", noting, ok)
		}},
		{"RouteOfAMountedApp", known, func(app *fiber.App, noting fiber.Handler) {
			sub := fiber.New()
			sub.Get("/:id", noting, ok)
			app.Use("/users", sub)
		}},
		{"RouteBetweenUses", known, func(app *fiber.App, noting fiber.Handler) {
			app.Use("/users", func(c fiber.Ctx) error { return c.Next() })
			app.Get("/users/:id", noting, ok)
			app.Use(ok)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := "nothing"
			app := fiber.New()
			c.mount(app, fiber3limit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
				got = routeAndID(q)
				return gate.Pass{}
			})))
			response, err := app.Test(httptest.NewRequest("GET", "/users/7", nil), fiber.TestConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(response.Body); string(body) != "ok" || got != c.want {
				t.Errorf("got %q, and the gate was told %q, want %q", body, got, c.want)
			}
		})
	}
}
