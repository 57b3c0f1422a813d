package store_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func ExampleStore_Observe() {
	ctx := context.Background()
	st, err := store.Open(redistest.Embedded(), nil) // a go-redis client
	if err != nil {
		log.Fatal(err)
	}
	remove := st.Observe(func(_ context.Context, e store.Event) {
		fmt.Println(e.Primitive, e.Name, e.Policy, e.Outcome) // no key, no subject
	})
	limiter, err := limit.New(st, "api", []limit.Policy{limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	locker, err := lock.New(st, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if _, err := limiter.Take(ctx, "user-17"); err != nil {
			log.Fatal(err)
		}
	}
	held, err := locker.Try(ctx, "order-17")
	if err != nil {
		log.Fatal(err)
	}
	_, err = locker.Try(ctx, "order-17")
	_ = held.Release(ctx)
	remove()
	fmt.Println(err)
	// Output:
	// limit api hourly granted
	// limit api hourly denied
	// lock orders  granted
	// lock orders  held
	// lock: held by another
}
