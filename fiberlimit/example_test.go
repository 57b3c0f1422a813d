package fiberlimit_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/fiberlimit"
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
		response, err := app.Test(httptest.NewRequest("GET", target, nil), -1)
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
	app.Get("/users/:id", fiberlimit.Middleware(perUser), func(c *fiber.Ctx) error {
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
	app.Get("/coffee", fiberlimit.Handler(teapot{}))

	statuses(app, "/coffee")
	// Output: /coffee 418
}

func ExampleKey() {
	bySession := fiberlimit.Key(func(c *fiber.Ctx) (string, error) {
		if session := c.Cookies("session"); strings.HasPrefix(session, "signed.") { // stands for your check
			return session, nil
		}
		return "", gate.ErrMissing
	})
	perSession := gate.RateLimit(twoAnHour("sessions"), gate.FirstOf(gate.Tag("session", bySession), gate.ByIP(nil)), nil)

	app := fiber.New()
	app.Get("/detail", fiberlimit.Middleware(perSession), func(c *fiber.Ctx) error {
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
			c, ok := fiberlimit.Context(q)
			return ok && c.Secure()
		},
	})

	app := fiber.New()
	app.Get("/plain", fiberlimit.Middleware(perIP), func(c *fiber.Ctx) error {
		return c.SendString("ok")
	})

	statuses(app, "/plain")
	// Output: /plain 200
}

// DropTrailers comes before any other middleware.
func ExampleDropTrailers() {
	app := fiber.New()
	app.Use(fiberlimit.DropTrailers)
	app.Use(recover.New())
	app.Get("/detail", fiberlimit.Middleware(gate.RateLimit(twoAnHour("trailers"), gate.ByIP(nil), nil)), func(c *fiber.Ctx) error {
		return c.SendString("ok")
	})

	statuses(app, "/detail", "/detail", "/detail")
	// Output:
	// /detail 200
	// /detail 200
	// /detail 429
}
