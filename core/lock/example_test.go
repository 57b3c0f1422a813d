package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/storetest"
)

// connect stands for connecting to your Redis.
func connect() script.Client { return storetest.Embedded() }

func ExampleNew() {
	locker, err := lock.New(connect(), "orders", &lock.Options{
		Lease:   10 * time.Second, // how long a lock outlives a process that died
		Wait:    5 * time.Second,
		MaxHold: time.Minute,
	})
	if err != nil {
		log.Fatal(err) // names every field that is wrong, and the remedy
	}
	fmt.Println(locker.Name())
	// Output: orders
}

func ExampleLocker_Do() {
	locker, err := lock.New(connect(), "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = locker.Do(context.Background(), "order-17", func(ctx context.Context) error {
		held, _ := lock.FromContext(ctx)
		fmt.Println("shipping", held.Fence() > 0, ctx.Err()) // ctx ends when the lock is lost
		return nil
	})
	fmt.Println(err)
	// Output:
	// shipping true <nil>
	// <nil>
}

func ExampleLocker_Try() {
	ctx := context.Background()
	locker, err := lock.New(connect(), "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	held, err := locker.Try(ctx, "order-17")
	if err != nil {
		log.Fatal(err)
	}
	_, err = locker.Try(ctx, "order-17")
	fmt.Println(errors.Is(err, lock.ErrHeld))
	fmt.Println(held.Release(ctx))
	// Output:
	// true
	// <nil>
}

func ExampleLocker_DoAll() {
	locker, err := lock.New(connect(), "stock", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = locker.DoAll(context.Background(), []string{"sku-17", "sku-4"}, func(ctx context.Context, held *lock.Locks) error {
		fmt.Println("booking", held.Fence("sku-17") > 0, held.Fence("sku-4") > 0, ctx.Err()) // ctx ends when one is lost
		return nil
	})
	fmt.Println(err)
	// Output:
	// booking true true <nil>
	// <nil>
}

func ExampleLocker_As() {
	ctx := context.Background()
	locker, err := lock.New(connect(), "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	checkout := locker.As("checkout-99")
	err = checkout.Do(ctx, "order-17", func(ctx context.Context) error {
		return checkout.Do(ctx, "order-17", func(context.Context) error {
			_, err := locker.Try(ctx, "order-17")
			fmt.Println("others:", err)
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// others: lock: held by another
	// <nil>
}

func ExampleLocker_Lead() {
	ctx, shutDown := context.WithCancel(context.Background()) // a real one ends with a signal
	locker, err := lock.New(connect(), "roles", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = locker.Lead(ctx, "rebalance", func(ctx context.Context) error {
		held, _ := lock.FromContext(ctx)
		fmt.Println("leading", held.Fence() > 0)
		shutDown()
		<-ctx.Done() // the leadership is lost, or the process is shut down
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// leading true
	// context canceled
}

func ExampleLocker_Once() {
	locker, err := lock.New(connect(), "jobs", nil)
	if err != nil {
		log.Fatal(err)
	}
	// Each process computes the tick before it sleeps until then, so all have the same one.
	tick := time.Now().Truncate(time.Hour).Add(time.Hour)
	for range 2 {
		ran, err := locker.Once(context.Background(), "report", tick, lock.Again, func(context.Context) error {
			fmt.Println("reporting")
			return nil
		})
		fmt.Println(ran, err)
	}
	// Output:
	// reporting
	// true <nil>
	// false <nil>
}

func ExampleLock_Extend() {
	ctx := context.Background()
	locker, err := lock.New(connect(), "orders", &lock.Options{Lease: 10 * time.Second, NoRenewal: true})
	if err != nil {
		log.Fatal(err)
	}
	held, err := locker.Acquire(ctx, "order-17")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(held.Extend(ctx, time.Minute))
	state, err := locker.Inspect(ctx, "order-17")
	fmt.Println(state.Holds, state.Lease > 50*time.Second, err)
	// Output:
	// <nil>
	// 1 true <nil>
}

func ExampleLocker_Acquire() {
	ctx := context.Background()
	locker, err := lock.New(connect(), "orders", &lock.Options{Wait: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	held, err := locker.Acquire(ctx, "order-17") // waits for another holder, 5 seconds at most
	switch {
	case errors.Is(err, lock.ErrHeld):
		log.Fatal("another process works on the order")
	case err != nil:
		log.Fatal(err) // Redis did not answer: do not do the work
	}
	fmt.Println("shipping", held.Fence() > 0)
	if err := held.Release(ctx); err != nil {
		log.Print(err) // the lock was lost before: another process may have shipped it too
	}
	// Output: shipping true
}

// A database refuses the writes of a holder that has lost the lock: it keeps the largest
// fence that it has seen.
func ExampleFromContext() {
	ship := func(ctx context.Context, order string) error {
		held, ok := lock.FromContext(ctx)
		if !ok {
			return errors.New("ship must be called under the order's lock")
		}
		fmt.Println("UPDATE orders SET shipped = true, fence = $1 WHERE id = $2 AND fence <= $1", held.Fence() > 0, order)
		return nil
	}
	locker, err := lock.New(connect(), "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = locker.Do(context.Background(), "order-17", func(ctx context.Context) error { return ship(ctx, "order-17") })
	fmt.Println(err)
	// Output:
	// UPDATE orders SET shipped = true, fence = $1 WHERE id = $2 AND fence <= $1 true order-17
	// <nil>
}
