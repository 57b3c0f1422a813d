// Ten requests a second and address, twenty at once.
package main

import (
	"cmp"
	"log"
	"os"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/fiber3limit"
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
	limited := fiber3limit.Middleware(gate.RateLimit(limiter, gate.ByIP(nil), nil))

	app := fiber.New()
	app.Get("/hello", limited, func(c fiber.Ctx) error { return c.SendString("hello\n") })
	log.Fatal(app.Listen(cmp.Or(os.Getenv("ADDR"), "localhost:8080")))
}
