// Ten requests a second and address, twenty at once.
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/hertzlimit"
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
	limited := hertzlimit.Middleware(gate.RateLimit(limiter, gate.ByIP(nil), nil))

	h := server.Default(server.WithHostPorts(cmp.Or(os.Getenv("ADDR"), "localhost:8080")))
	h.GET("/hello", limited, func(_ context.Context, c *app.RequestContext) { c.String(200, "hello\n") })
	log.Fatal(h.Run())
}
