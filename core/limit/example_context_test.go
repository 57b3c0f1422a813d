package limit_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/neap-go/neap/core/limit"
)

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
