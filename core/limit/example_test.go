package limit_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// connect stands for connecting to your Redis.
func connect() *redis.Client { return redistest.Embedded() }

func ExampleNew() {
	limiter, err := limit.New(connect(), "api", []limit.Policy{
		limit.TokenBucket{Name: "burst", Rate: 10, Per: time.Minute, Burst: 2},
		limit.FixedWindow{Name: "hourly", Limit: 1000, Window: time.Hour},
	}, &limit.Options{Budget: time.Second, Fail: limit.FailClosed})
	if err != nil {
		log.Fatal(err) // names every field that is wrong, and the remedy
	}
	for range 3 {
		d, err := limiter.Take(context.Background(), "user-17")
		if err != nil {
			log.Fatal(err) // Redis could not answer
		}
		fmt.Println(d.Allowed, d.Policy, d.Remaining)
	}
	// Output:
	// true burst 1
	// true burst 0
	// false burst 0
}

func ExampleNewLocal() {
	limiter, err := limit.NewLocal("api", []limit.Policy{
		limit.FixedWindow{Limit: 1, Window: time.Minute},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		d, err := limiter.Take(context.Background(), "user-17")
		fmt.Println(d.Allowed, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleLimiter_With() {
	free, err := limit.New(connect(), "api", []limit.Policy{
		limit.FixedWindow{Name: "free", Limit: 10, Window: time.Hour},
	}, &limit.Options{Budget: time.Second, Fail: limit.FailClosed})
	if err != nil {
		log.Fatal(err)
	}
	paid, err := free.With(limit.FixedWindow{Name: "paid", Limit: 10_000, Window: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	d, err := paid.TakeN(context.Background(), "user-17", 100)
	fmt.Println(d.Allowed, d.Policy, d.Remaining, err)
	// Output: true paid 9900 <nil>
}

func ExampleNewConcurrency() {
	exports, err := limit.NewConcurrency(connect(), "exports", 2, &limit.ConcurrencyOptions{
		Budget: time.Second, Fail: limit.FailClosed,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for range 3 {
		slot, err := exports.Try(ctx, "user-17")
		if err != nil {
			log.Fatal(err) // Redis could not answer
		}
		defer slot.Release(ctx) // when the work is done
		fmt.Println(slot.Allowed, slot.Remaining, slot.RetryAfter)
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 1s
}

func ExampleNewLocalConcurrency() {
	exports, err := limit.NewLocalConcurrency("exports", 1, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	first, err := exports.Try(ctx, "user-17")
	fmt.Println(first.Allowed, err)
	second, err := exports.Try(ctx, "user-17")
	fmt.Println(second.Allowed, err, first.Release(ctx))
	// Output:
	// true <nil>
	// false <nil> <nil>
}

// A limit that is tried out: it is decided and reported, and denies nobody.
func ExampleShadow() {
	limiter, err := limit.New(connect(), "api", []limit.Policy{
		limit.FixedWindow{Name: "hourly", Limit: 1000, Window: time.Hour},
		limit.Shadow(limit.FixedWindow{Name: "stricter", Limit: 1, Window: time.Hour}),
	}, &limit.Options{Budget: time.Second, Fail: limit.FailClosed})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		d, err := limiter.Take(context.Background(), "user-17")
		if err != nil {
			log.Fatal(err)
		}
		for state := range d.States() {
			if state.Shadow {
				fmt.Println(d.Allowed, state.Policy, state.Allowed)
			}
		}
	}
	// Output:
	// true stricter true
	// true stricter false
}
