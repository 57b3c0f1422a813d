package inflight_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func ExampleNew() {
	rdb := redistest.Embedded() // stands for your go-redis client

	exports, err := inflight.New(rdb, "exports", 2, &inflight.Options{
		Budget: time.Second, Fail: store.FailClosed,
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

func ExampleNewLocal() {
	exports, err := inflight.NewLocal("exports", 1, nil)
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

func ExampleLimiter_Try() {
	exports, err := inflight.New(redistest.Embedded(), "reports", 1, &inflight.Options{
		Budget: time.Second, Fail: store.FailClosed,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	export := func(work func()) string {
		slot, err := exports.Try(ctx, "user-17")
		if err != nil {
			log.Fatal(err) // Redis could not answer
		}
		if !slot.Allowed {
			return fmt.Sprint("try again after ", slot.RetryAfter)
		}
		defer slot.Release(ctx)
		work()
		return "done"
	}
	fmt.Println(export(func() { fmt.Println(export(nil)) }))
	// Output:
	// try again after 1s
	// done
}
