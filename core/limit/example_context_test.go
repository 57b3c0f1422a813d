package limit_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// Code far from the limit reports what is left. Behind gate.RateLimit the context has the
// decision if the gate has InContext.
func ExampleFromContext() {
	report := func(ctx context.Context) string {
		d, ok := limit.FromContext(ctx)
		if !ok {
			return "not limited"
		}
		return fmt.Sprintf("%d of %d left", d.Remaining, d.Limit)
	}
	limiter, err := limit.NewLocal("messages", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	d, err := limiter.Take(ctx, "user-17")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report(ctx))
	fmt.Println(report(limit.NewContext(ctx, d)))
	// Output:
	// not limited
	// 9 of 10 left
}

// Code that limits without a gate hands its decision on.
func ExampleNewContext() {
	handle := func(ctx context.Context) {
		if d, ok := limit.FromContext(ctx); ok {
			fmt.Println(d.Remaining, "left")
		}
	}
	limiter, err := limit.NewLocal("messages", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	d, err := limiter.Take(ctx, "user-17")
	if err != nil || !d.Allowed {
		log.Fatal("do not handle the message: ", err)
	}
	handle(limit.NewContext(ctx, d))
	// Output: 9 left
}
