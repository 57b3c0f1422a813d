package store_test

import (
	"context"
	"fmt"
	"log"
	"runtime"
	"slices"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func ExampleStore_Observe() {
	ctx := context.Background()
	rdb := redistest.Embedded() // stands for your go-redis client
	st, err := store.Open(rdb, &store.Options{Budget: 5 * time.Second})
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

// Two limiters share a prefix, a budget and the breakers.
func ExampleStore_Drain() {
	st, err := store.Open(redistest.Embedded(), &store.Options{Budget: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := limit.New(st, "drained", []limit.Policy{limit.FixedWindow{Limit: 1000, Window: time.Hour}}, &limit.Options{Prepaid: limit.Prepaid{Most: 16}})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if _, err := limiter.Take(context.Background(), "user-17"); err != nil {
			log.Fatal(err)
		}
	}
	// At the end of the process, after the last request: it gives back what was charged ahead.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(st.Drain(ctx))
	// Output: <nil>
}

func ExampleOpen() {
	rdb := redistest.Embedded() // stands for your go-redis client
	st, err := store.Open(rdb, &store.Options{
		Prefix: "shop",
		Budget: 5 * time.Second, // the longest that a call takes; without it, 50 ms for a limit
	})
	if err != nil {
		log.Fatal(err) // names every field that is wrong, and the remedy
	}
	for _, name := range []string{"api", "login"} {
		limiter, err := limit.New(st, name, []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, nil)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := limiter.Take(context.Background(), "user-17"); err != nil {
			log.Fatal(err)
		}
	}
	keys, err := rdb.Keys(context.Background(), "*").Result() // for a look; never in production
	slices.Sort(keys)
	fmt.Println(keys, err)
	// Output: [shop:limit:api:{user-17}:window-10-1h shop:limit:login:{user-17}:window-10-1h] <nil>
}

// All that is made on one client shares a store, also if you made none.
func ExampleOf() {
	rdb := redistest.Embedded() // stands for your go-redis client
	locker, err := lock.New(rdb, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	st, err := store.Of(rdb)
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range st.Gauges() {
		fmt.Println(g.Primitive, g.Name)
	}
	runtime.KeepAlive(locker) // a locker that nothing uses any more has no gauge
	// Output: lock orders
}

// A metric counts errors by their class, which names no key.
func ExampleClassOf() {
	rdb := redistest.Embedded() // stands for your go-redis client
	_ = rdb.Close()             // a client that is closed refuses each call
	locker, err := lock.New(rdb, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = locker.Try(context.Background(), "order-17")
	fmt.Println(store.ClassOf(err))
	fmt.Println(store.ClassOf(lock.ErrHeld)) // Redis answered as it should
	// Output:
	// script: refused by configuration
	// <nil>
}
