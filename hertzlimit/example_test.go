package hertzlimit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/ut"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/hertzlimit"
)

// twoAnHour is used here in place of limit.New, whose limiters keep their state in Redis.
func twoAnHour(name string) *limit.Limiter {
	limiter, err := limit.NewLocal(name, []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, nil)
	if err != nil {
		panic(err)
	}
	return limiter
}

func statuses(h *server.Hertz, targets ...string) {
	for _, target := range targets {
		fmt.Println(target, ut.PerformRequest(h.Engine, "GET", target, nil).Code)
	}
}

func ExampleMiddleware() {
	perUser := gate.RateLimit(twoAnHour("users"), gate.ByParam("id"), nil)

	h := server.Default(server.WithUseRawPath(true), server.WithDisablePrintRoute(true))
	h.GET("/users/:id", hertzlimit.Middleware(perUser), func(_ context.Context, c *app.RequestContext) {
		c.String(200, "hello, "+c.Param("id"))
	})

	statuses(h, "/users/alice", "/users/alice", "/users/alice", "/users/bob")
	// Output:
	// /users/alice 200
	// /users/alice 200
	// /users/alice 429
	// /users/bob 200
}

// teapot is an endpoint: it answers every request itself.
type teapot struct{}

func (teapot) Serve(gate.Request) gate.Reply {
	return gate.Reply{Status: 418, Body: []byte("short and stout")}
}

// callback.New makes such endpoints for payment providers.
func ExampleHandler() {
	h := server.Default(server.WithDisablePrintRoute(true))
	h.GET("/tea", hertzlimit.Handler(teapot{}))

	w := ut.PerformRequest(h.Engine, "GET", "/tea", nil)
	fmt.Println(w.Code, w.Body)
	// Output: 418 short and stout
}

// A key of your own reads what Hertz knows of a request.
func ExampleKey() {
	byTenant := hertzlimit.Key(func(_ context.Context, c *app.RequestContext) (string, error) {
		tenant := c.Query("tenant")
		if tenant == "" {
			return "", gate.Refuse(400, "the request names no tenant")
		}
		return tenant, nil
	})
	perTenant := gate.RateLimit(twoAnHour("tenants"), gate.Tag("tenant", byTenant), nil)

	h := server.Default(server.WithDisablePrintRoute(true))
	h.Use(hertzlimit.Middleware(perTenant))
	h.GET("/", func(_ context.Context, c *app.RequestContext) { c.String(200, "ok") })

	statuses(h, "/?tenant=a", "/?tenant=a", "/?tenant=a", "/?tenant=b", "/")
	// Output:
	// /?tenant=a 200
	// /?tenant=a 200
	// /?tenant=a 429
	// /?tenant=b 200
	// / 400
}

// A Cost, like a Key, can look at the *app.RequestContext.
func ExampleContext() {
	perUser := gate.RateLimit(twoAnHour("users"), gate.ByParam("id"), &gate.RateLimitOptions{
		Cost: func(q gate.Request) (int64, error) {
			if c, ok := hertzlimit.Context(q); ok && c.Query("full") == "1" {
				return 2, nil
			}
			return 1, nil
		},
	})

	h := server.Default(server.WithDisablePrintRoute(true))
	h.GET("/users/:id", hertzlimit.Middleware(perUser), func(_ context.Context, c *app.RequestContext) { c.String(200, "ok") })

	statuses(h, "/users/alice?full=1", "/users/alice")
	// Output:
	// /users/alice?full=1 200
	// /users/alice 429
}
