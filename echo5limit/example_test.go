package echo5limit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/echo5limit"
)

// twoAnHour is used here in place of limit.New, whose limiters keep their state in Redis.
func twoAnHour(name string) *limit.Limiter {
	limiter, err := limit.NewLocal(name, []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, nil)
	if err != nil {
		panic(err)
	}
	return limiter
}

func statuses(e *echo.Echo, targets ...string) {
	for _, target := range targets {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		fmt.Println(target, w.Code)
	}
}

func ExampleMiddleware() {
	perUser := gate.RateLimit(twoAnHour("users"), gate.ByParam("id"), nil)

	e := echo.New()
	e.GET("/users/:id", func(c *echo.Context) error {
		return c.String(200, "hello, "+c.Param("id"))
	}, echo5limit.Middleware(perUser))

	statuses(e, "/users/alice", "/users/alice", "/users/alice", "/users/bob")
	// Output:
	// /users/alice 200
	// /users/alice 200
	// /users/alice 429
	// /users/bob 200
}

// teapot is an endpoint: it answers every request itself.
type teapot struct{}

func (teapot) Serve(gate.Request) gate.Reply {
	return gate.Reply{Status: http.StatusTeapot}
}

func ExampleHandler() {
	e := echo.New()
	e.GET("/coffee", echo5limit.Handler(teapot{}))

	statuses(e, "/coffee")
	// Output: /coffee 418
}

func ExampleKey() {
	bySession := echo5limit.Key(func(c *echo.Context) (string, error) {
		if session, err := c.Cookie("session"); err == nil && strings.HasPrefix(session.Value, "signed.") { // stands for your check
			return session.Value, nil
		}
		return "", gate.ErrMissing
	})
	perSession := gate.RateLimit(twoAnHour("sessions"), gate.FirstOf(gate.Tag("session", bySession), gate.ByIP(nil)), nil)

	e := echo.New()
	e.GET("/detail", func(c *echo.Context) error {
		return c.String(200, "ok")
	}, echo5limit.Middleware(perSession))

	statuses(e, "/detail", "/detail", "/detail")
	// Output:
	// /detail 200
	// /detail 200
	// /detail 429
}

func ExampleContext() {
	perIP := gate.RateLimit(twoAnHour("plaintext"), gate.ByIP(nil), &gate.RateLimitOptions{
		Skip: func(q gate.Request) bool {
			c, ok := echo5limit.Context(q)
			return ok && c.IsTLS()
		},
	})

	e := echo.New()
	e.GET("/plain", func(c *echo.Context) error {
		return c.String(200, "ok")
	}, echo5limit.Middleware(perIP))

	statuses(e, "/plain")
	// Output: /plain 200
}
