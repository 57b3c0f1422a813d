// Ten requests a second and address, twenty at once.
package main

import (
	"cmp"
	"log"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/ginlimit"
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
	limited := ginlimit.Middleware(gate.RateLimit(limiter, gate.ByIP(nil), nil))

	r := gin.Default()
	r.GET("/hello", limited, func(c *gin.Context) { c.String(200, "hello\n") })
	log.Fatal(r.Run(cmp.Or(os.Getenv("ADDR"), "localhost:8080")))
}
