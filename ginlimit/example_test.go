package ginlimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/ginlimit"
)

// twoAnHour is used here in place of limit.New, whose limiters keep their state in Redis.
func twoAnHour(name string) *limit.Limiter {
	limiter, err := limit.NewLocal(name, []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, nil)
	if err != nil {
		panic(err)
	}
	return limiter
}

func statuses(r *gin.Engine, targets ...string) {
	for _, target := range targets {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		fmt.Println(target, w.Code)
	}
}

func ExampleMiddleware() {
	perUser := gate.RateLimit(twoAnHour("users"), gate.ByParam("id"), nil)

	r := gin.New()
	r.Use(gin.Recovery())
	r.GET("/users/:id", ginlimit.Middleware(perUser), func(c *gin.Context) {
		c.String(200, "hello, "+c.Param("id"))
	})

	statuses(r, "/users/alice", "/users/alice", "/users/alice", "/users/bob")
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
	r := gin.New()
	r.GET("/coffee", ginlimit.Handler(teapot{}))

	statuses(r, "/coffee")
	// Output: /coffee 418
}

func ExampleKey() {
	bySession := ginlimit.Key(func(c *gin.Context) (string, error) {
		if session, err := c.Cookie("session"); err == nil && strings.HasPrefix(session, "signed.") { // stands for your check
			return session, nil
		}
		return "", gate.ErrMissing
	})
	perSession := gate.RateLimit(twoAnHour("sessions"), gate.FirstOf(gate.Tag("session", bySession), gate.ByIP(nil)), nil)

	r := gin.New()
	r.GET("/detail", ginlimit.Middleware(perSession), func(c *gin.Context) {
		c.String(200, "ok")
	})

	statuses(r, "/detail", "/detail", "/detail")
	// Output:
	// /detail 200
	// /detail 200
	// /detail 429
}

func ExampleContext() {
	perIP := gate.RateLimit(twoAnHour("plaintext"), gate.ByIP(nil), &gate.RateLimitOptions{
		Skip: func(q gate.Request) bool {
			c, ok := ginlimit.Context(q)
			return ok && c.Request.TLS != nil
		},
	})

	r := gin.New()
	r.GET("/plain", ginlimit.Middleware(perIP), func(c *gin.Context) {
		c.String(200, "ok")
	})

	statuses(r, "/plain")
	// Output: /plain 200
}
