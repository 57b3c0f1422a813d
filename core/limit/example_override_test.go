package limit_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/neap-go/neap/core/limit"
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
