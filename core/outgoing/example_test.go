package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/outgoing"
	"github.com/neap-go/neap/internal/storetest"
)

func ExampleNew() {
	ctx := context.Background()
	limiter, err := limit.New(storetest.Embedded(), "example", []limit.Policy{
		limit.TokenBucket{Rate: 90, Per: time.Minute, Burst: 5},
	}, &limit.Options{Holds: true})
	if err != nil {
		panic(err)
	}
	calls, err := outgoing.New(limiter, nil)
	if err != nil {
		panic(err)
	}
	call, err := calls.Begin(ctx, "api.example.com", 1, nil)
	if err != nil {
		panic(err)
	}
	// The partner answers that it wants no calls for a minute.
	call.Answered(ctx, time.Minute, true)
	call.End(ctx, -1)

	_, err = calls.Begin(ctx, "api.example.com", 1, nil)
	var denied *limit.LimitedError
	fmt.Println(errors.As(err, &denied), denied.Decision.OnHold(), denied.RetryAfter.Round(time.Second))
	// Output: true true 1m0s
}

func ExampleContained() {
	outgoing.Contained(func() { panic("on a goroutine of a client library") })
	fmt.Println("the process goes on")
	// Output: the process goes on
}
