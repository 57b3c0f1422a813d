package limit_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// A busy subject costs one round trip for many decisions. What a process has left when it
// ends, it gives back.
func ExamplePrepaid() {
	ctx := context.Background()
	st, err := store.Open(redistest.Embedded(), nil) // give it your go-redis client
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := limit.New(st, "api", []limit.Policy{
		limit.FixedWindow{Name: "hourly", Limit: 10_000, Window: time.Hour},
	}, &limit.Options{Budget: time.Minute, Prepaid: limit.Prepaid{Most: 100}})
	if err != nil {
		log.Fatal(err)
	}
	for range 1000 {
		if d, err := limiter.Take(ctx, "everybody"); err != nil || !d.Allowed {
			log.Fatal("deny the request: ", err)
		}
	}
	fmt.Println(st.Drain(ctx)) // when the process shuts down
	// Output: <nil>
}

// If the process dies, its estimate is given back after a minute, and not at the end of
// the month.
func ExampleWithLease() {
	ctx := context.Background()
	rdb := redistest.Embedded() // stands for your go-redis client
	limiter, err := limit.New(rdb, "tokens", []limit.Policy{
		limit.WithLease(limit.CalendarWindow{Name: "monthly", Limit: 1_000_000, Every: limit.Month}, time.Minute),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	d, err := limiter.TakeN(ctx, "customer-17", 4_000) // an estimate
	if err != nil || !d.Allowed {
		log.Fatal("deny the request: ", err)
	}
	s, err := d.Settle(ctx, 3_200) // always, also if it was exactly the estimate
	fmt.Println(s.After.Remaining, err)
	// Output: 996800 <nil>
}

// While Redis is away, each of 4 processes admits a quarter of what was left.
func ExampleOptions() {
	rdb := redistest.Embedded() // stands for your go-redis client
	limiter, err := limit.New(rdb, "api", []limit.Policy{
		limit.TokenBucket{Rate: 100, Per: time.Second},
	}, &limit.Options{
		Budget:          20 * time.Millisecond,  // the longest that a decision takes
		Fail:            store.FailLocal,        // or FailOpen, or FailClosed
		Instances:       4,                      // how many processes share the requests
		RememberDenials: 100 * time.Millisecond, // deny in process what Redis has denied
	})
	if err != nil {
		log.Fatal(err) // names every field that is wrong, and the remedy
	}
	fmt.Println(limiter.Name(), limiter.Instances())
	// Output: api 4
}
