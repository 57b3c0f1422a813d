// Ten requests a second and address, twenty at once.
package main

import (
	"cmp"
	"log"
	"os"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/echo5limit"
)

func main() {
	rdb := redis.NewClient(&redis.Options{
		Addr:                  os.Getenv("REDIS_ADDR"), // empty is localhost:6379
		ContextTimeoutEnabled: true,
	})
	limiter, err := limit.New(rdb, "api", []limit.Policy{
		limit.TokenBucket{Rate: 10, Per: time.Second, Burst: 20},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	limited := echo5limit.Middleware(gate.RateLimit(limiter, gate.ByIP(nil), nil))

	e := echo.New()
	e.GET("/hello", func(c *echo.Context) error { return c.String(200, "hello\n") }, limited)
	if err := e.Start(cmp.Or(os.Getenv("ADDR"), "localhost:8080")); err != nil {
		log.Fatal(err)
	}
}
