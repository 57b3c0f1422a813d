package limit_test

import (
	"context"
	"fmt"
	"log"
	"time"
	_ "time/tzdata" // if the machine may have no time zone data

	"github.com/neap-go/neap/core/limit"
)

// takeOneByOne asks for n permits under these policies. It takes limit.NewLocal, which needs no
// Redis; limit.New takes the same policies.
func takeOneByOne(n int, policies ...limit.Policy) {
	limiter, err := limit.NewLocal("api", policies, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range n {
		d, err := limiter.Take(context.Background(), "user-17")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Allowed, d.Policy, d.Remaining, d.RetryAfter.Round(time.Minute))
	}
}

// 10 an hour, and 2 of them at once: a permit comes back every six minutes.
func ExampleTokenBucket() {
	takeOneByOne(3, limit.TokenBucket{Rate: 10, Per: time.Hour, Burst: 2})
	// Output:
	// true bucket-10-1h-2 1 0s
	// true bucket-10-1h-2 0 0s
	// false bucket-10-1h-2 0 6m0s
}

// 2 in each hour. The hour begins with the first request.
func ExampleFixedWindow() {
	takeOneByOne(3, limit.FixedWindow{Name: "hourly", Limit: 2, Window: time.Hour})
	// Output:
	// true hourly 1 0s
	// true hourly 0 0s
	// false hourly 0 1h0m0s
}

// About 2 in any day: the end of a day brings no jump.
func ExampleSlidingWindow() {
	limiter, err := limit.NewLocal("api", []limit.Policy{
		limit.SlidingWindow{Name: "day", Limit: 2, Window: 24 * time.Hour},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		d, err := limiter.Take(context.Background(), "user-17")
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
}

// Never more than 2 logins within any ten minutes.
func ExampleSlidingLog() {
	takeOneByOne(3, limit.SlidingLog{Name: "logins", Limit: 2, Window: 10 * time.Minute})
	// Output:
	// true logins 1 0s
	// true logins 0 0s
	// false logins 0 10m0s
}

// 10,000 in each month, by the clocks of Shanghai.
func ExampleCalendarWindow() {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		log.Fatal(err) // the machine has no time zone data: import time/tzdata
	}
	limiter, err := limit.NewLocal("quota", []limit.Policy{
		limit.CalendarWindow{Name: "monthly", Limit: 10_000, Every: limit.Month, Location: shanghai},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	d, err := limiter.TakeN(context.Background(), "customer-17", 10_000)
	fmt.Println(d.Allowed, d.Remaining, d.ResetAfter <= 31*24*time.Hour, err) // until the month ends
	// Output: true 0 true <nil>
}

// 60 requests an hour, and 1,000 tokens an hour, in one decision.
func ExamplePerRequest() {
	limiter, err := limit.NewLocal("model", []limit.Policy{
		limit.FixedWindow{Name: "tokens", Limit: 1000, Window: time.Hour, Unit: "tokens"},
		limit.PerRequest(limit.FixedWindow{Name: "requests", Limit: 60, Window: time.Hour}),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	d, err := limiter.TakeN(context.Background(), "user-17", 250)
	if err != nil {
		log.Fatal(err)
	}
	for s := range d.States() {
		fmt.Println(s.Policy, s.Remaining)
	}
	// Output:
	// tokens 750
	// requests 59
}

// A quota is raised while it is in use: what was taken stays taken.
func ExampleKeepOnChange() {
	limiter, err := limit.NewLocal("quota", []limit.Policy{
		limit.KeepOnChange(limit.FixedWindow{Name: "daily", Limit: 10, Window: 24 * time.Hour}),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := limiter.TakeN(ctx, "customer-17", 10); err != nil {
		log.Fatal(err)
	}
	raised, err := limiter.With(limit.KeepOnChange(limit.FixedWindow{Name: "daily", Limit: 25, Window: 24 * time.Hour}))
	if err != nil {
		log.Fatal(err)
	}
	d, err := raised.Take(ctx, "customer-17")
	fmt.Println(d.Allowed, d.Remaining, err)
	// Output: true 14 <nil>
}

// A client that goes on after it was denied twice is banned, for longer each time.
func ExampleWithBan() {
	limiter, err := limit.NewLocal("login", []limit.Policy{
		limit.WithBan(
			limit.FixedWindow{Name: "attempts", Limit: 1, Window: time.Minute},
			limit.Ban{After: 2, Within: time.Hour, For: 2 * time.Hour, Max: 24 * time.Hour},
		),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		d, err := limiter.Take(context.Background(), "203.0.113.7")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Allowed, d.Banned(), d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true false 0s
	// false false 1m0s
	// false true 2h0m0s
}

// A tool reads the numbers of a policy from the end of its key in Redis.
func ExamplePolicyOfKey() {
	policy, ban, err := limit.PolicyOfKey("login!window-5-1h")
	if err != nil {
		log.Fatal(err)
	}
	if window, is := policy.(limit.FixedWindow); is {
		fmt.Println(window.Name, window.Limit, window.Window, ban == limit.Ban{})
	}
	// Output: login 5 1h0m0s true
}
