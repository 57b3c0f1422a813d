package redis_rate_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/contrib/redis_rate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// connect stands for connecting to your Redis.
func connect() *redis.Client { return redistest.Embedded() }

func ExampleNewLimiter() {
	limiter := redis_rate.NewLimiter(connect())
	for range 3 {
		res, err := limiter.AllowN(context.Background(), "project:123", redis_rate.PerHour(10), 4)
		if err != nil {
			log.Fatal(err) // Redis could not answer
		}
		fmt.Println("allowed", res.Allowed, "remaining", res.Remaining)
	}
	// Output:
	// allowed 4 remaining 6
	// allowed 4 remaining 2
	// allowed 0 remaining 2
}

func ExampleLimiter_AllowAtMost() {
	limiter := redis_rate.NewLimiter(connect())
	for range 3 {
		res, err := limiter.AllowAtMost(context.Background(), "batch", redis_rate.PerHour(10), 7)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("allowed", res.Allowed, "of 7")
	}
	// Output:
	// allowed 7 of 7
	// allowed 3 of 7
	// allowed 0 of 7
}

// With store.FailLocal, each process goes on by itself while Redis is away.
func ExampleNew() {
	limiter, err := redis_rate.New(connect(), &limit.Options{Budget: 100 * time.Millisecond, Fail: store.FailLocal})
	if err != nil {
		log.Fatal(err)
	}
	res, err := limiter.Allow(context.Background(), "project:123", redis_rate.PerMinute(60))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Allowed, res.Limit)
	// Output: 1 60 req/m (burst 60)
}

func ExampleLimit() {
	for _, rate := range []redis_rate.Limit{
		redis_rate.PerSecond(10),
		redis_rate.PerMinute(60),
		redis_rate.PerHour(1000),
		{Rate: 100, Burst: 20, Period: 24 * time.Hour},
	} {
		fmt.Println(rate)
	}
	// Output:
	// 10 req/s (burst 10)
	// 60 req/m (burst 60)
	// 1000 req/h (burst 1000)
	// 100 req/24h0m0s (burst 20)
}
