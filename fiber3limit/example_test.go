package fiber3limit_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/fiber3limit"
)

// twoAnHour is used here in place of limit.New, whose limiters keep their state in Redis.
func twoAnHour(name string) *limit.Limiter {
	limiter, err := limit.NewLocal(name, []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, nil)
	if err != nil {
		panic(err)
	}
	return limiter
}

func statuses(app *fiber.App, targets ...string) {
	for _, target := range targets {
		response, err := app.Test(httptest.NewRequest("GET", target, nil), fiber.TestConfig{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(target, response.StatusCode)
	}
}

func ExampleMiddleware() {
	perUser := gate.RateLimit(twoAnHour("users"), gate.ByParam("id"), nil)

	app := fiber.New()
	app.Use(recover.New())
	app.Get("/users/:id", fiber3limit.Middleware(perUser), func(c fiber.Ctx) error {
		return c.SendString("hello, " + c.Params("id"))
	})

	statuses(app, "/users/alice", "/users/alice", "/users/alice", "/users/bob")
	// Output:
	// /users/alice 200
	// /users/alice 200
	// /users/alice 429
	// /users/bob 200
}

// teapot is an endpoint: it answers every request itself.
type teapot struct{}

func (teapot) Serve(gate.Request) gate.Reply {
	return gate.Reply{Status: fiber.StatusTeapot}
}

func ExampleHandler() {
	app := fiber.New()
	app.Get("/coffee", fiber3limit.Handler(teapot{}))

	statuses(app, "/coffee")
	// Output: /coffee 418
}

func ExampleKey() {
	bySession := fiber3limit.Key(func(c fiber.Ctx) (string, error) {
		if session := c.Cookies("session"); strings.HasPrefix(session, "signed.") { // stands for your check
			return session, nil
		}
		return "", gate.ErrMissing
	})
	perSession := gate.RateLimit(twoAnHour("sessions"), gate.FirstOf(gate.Tag("session", bySession), gate.ByIP(nil)), nil)

	app := fiber.New()
	app.Get("/detail", fiber3limit.Middleware(perSession), func(c fiber.Ctx) error {
		return c.SendString("ok")
	})

	statuses(app, "/detail", "/detail", "/detail")
	// Output:
	// /detail 200
	// /detail 200
	// /detail 429
}

func ExampleContext() {
	perIP := gate.RateLimit(twoAnHour("plaintext"), gate.ByIP(nil), &gate.RateLimitOptions{
		Skip: func(q gate.Request) bool {
			c, ok := fiber3limit.Context(q)
			return ok && c.Secure()
		},
	})

	app := fiber.New()
	app.Get("/plain", fiber3limit.Middleware(perIP), func(c fiber.Ctx) error {
		return c.SendString("ok")
	})

	statuses(app, "/plain")
	// Output: /plain 200
}

// DropTrailers comes before any other middleware.
func ExampleDropTrailers() {
	app := fiber.New()
	app.Use(fiber3limit.DropTrailers)
	app.Use(recover.New())
	app.Get("/detail", fiber3limit.Middleware(gate.RateLimit(twoAnHour("trailers"), gate.ByIP(nil), nil)), func(c fiber.Ctx) error {
		return c.SendString("ok")
	})

	statuses(app, "/detail", "/detail", "/detail")
	// Output:
	// /detail 200
	// /detail 200
	// /detail 429
}
