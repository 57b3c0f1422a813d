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

// Support raises the limit of one customer for a day.
func ExampleLimiter_Override() {
	ctx := context.Background()
	limiter, err := limit.New(redistest.Embedded(), "api", []limit.Policy{
		limit.KeepOnChange(limit.FixedWindow{Name: "hourly", Limit: 10, Window: time.Hour}),
	}, &limit.Options{Overrides: true})
	if err != nil {
		log.Fatal(err)
	}
	take := func() {
		d, err := limiter.TakeN(ctx, "user=42", 4)
		fmt.Println(d.Allowed, d.Remaining, "of", d.Limit, err)
	}
	take()
	raised := limit.FixedWindow{Limit: 1000, Window: time.Hour}
	fmt.Println(limiter.Override(ctx, "user=42", 24*time.Hour, raised))
	take()
	policies, left, err := limiter.Overridden(ctx, "user=42")
	fmt.Println(policies, left.Round(time.Hour), err)
	fmt.Println(limiter.EndOverride(ctx, "user=42"))
	take()
	// Output:
	// true 6 of 10 <nil>
	// <nil>
	// true 992 of 1000 <nil>
	// window 1000/1h 24h0m0s <nil>
	// true <nil>
	// false 2 of 10 <nil>
}

func ExampleLimiter_Ban() {
	ctx := context.Background()
	ban := limit.Ban{After: 3, Within: time.Minute, For: time.Hour}
	limiter, err := limit.New(redistest.Embedded(), "login", []limit.Policy{
		limit.WithBan(limit.FixedWindow{Limit: 5, Window: time.Minute}, ban),
	}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed})
	if err != nil {
		log.Fatal(err)
	}
	if err := limiter.Ban(ctx, "ip=192.0.2.1", time.Hour); err != nil {
		log.Fatal(err)
	}
	d, err := limiter.Take(ctx, "ip=192.0.2.1")
	fmt.Println(d.Allowed, d.Banned(), d.RetryAfter.Round(time.Minute), err)
	if _, err := limiter.Unban(ctx, "ip=192.0.2.1"); err != nil {
		log.Fatal(err)
	}
	d, err = limiter.Take(ctx, "ip=192.0.2.1")
	fmt.Println(d.Allowed, err)
	// Output:
	// false true 1h0m0s <nil>
	// true <nil>
}

func ExampleLimiter_Hold() {
	ctx := context.Background()
	limiter, err := limit.New(redistest.Embedded(), "partner", []limit.Policy{
		limit.TokenBucket{Rate: 90, Per: time.Minute, Burst: 5},
	}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed, Holds: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := limiter.Hold(ctx, "api.example.com", time.Minute); err != nil { // for all processes
		log.Fatal(err)
	}
	d, err := limiter.Take(ctx, "api.example.com")
	fmt.Println(d.Allowed, d.OnHold(), d.RetryAfter.Round(time.Second), err)
	// Output: false true 1m0s <nil>
}
