// Ten requests a second for each address, and up to twenty at once.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
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
	warm, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	if err := limiter.Warm(warm); err != nil { // connect before the first request
		slog.Error("starting without Redis", "err", err)
	}
	cancel()

	limited := nethttp.Middleware(gate.RateLimit(limiter, gate.ByIP(nil), nil))
	http.Handle("GET /hello", limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})))
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "localhost:8080"), nil))
}
