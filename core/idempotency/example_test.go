package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// connect stands for connecting to your Redis.
func connect() script.Client { return storetest.Embedded() }

func ExampleNew() {
	guard, err := idempotency.New(connect(), "orders", idempotency.Reject{}, &idempotency.Options{
		Lease:     10 * time.Second,   // how long a dead process keeps others waiting
		Retention: 3 * 24 * time.Hour, // longer than any client repeats
	})
	if err != nil {
		log.Fatal(err) // names every field that is wrong, and the remedy
	}
	fmt.Println(guard.Name())
	// Output: orders
}

func ExampleGuard_Do() {
	guard, err := idempotency.New(connect(), "payments", idempotency.Retry{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 { // a queue delivers the message twice
		receipt, err := guard.Do(context.Background(), "message-17", func(ctx context.Context) ([]byte, error) {
			claim, _ := idempotency.FromContext(ctx)
			fmt.Println("paying, attempt", claim.Attempt(), ctx.Err()) // ctx ends when the claim is lost
			return []byte("receipt 99"), nil
		})
		fmt.Println(string(receipt), err)
	}
	// Output:
	// paying, attempt 1 <nil>
	// receipt 99 <nil>
	// receipt 99 <nil>
}

func ExampleGuard_Begin() {
	ctx := context.Background()
	guard, err := idempotency.New(connect(), "orders", idempotency.Retry{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	place := func(fingerprint string) {
		answer, err := guard.Begin(ctx, "order-17", fingerprint)
		switch {
		case errors.Is(err, idempotency.ErrMismatch):
			fmt.Println("the key is that of another order")
		case errors.Is(err, idempotency.ErrInFlight):
			fmt.Println("come again")
		case err != nil:
			log.Fatal(err) // Redis did not answer, or the work is in doubt: do not run it
		case answer.Done:
			fmt.Println("it was done:", string(answer.Result))
		default:
			fmt.Println("running it:", answer.Claim.Conclude(ctx, idempotency.DoneWith([]byte("booked"))))
		}
	}
	place("tea")
	place("tea")
	place("coffee")
	// Output:
	// running it: <nil>
	// it was done: booked
	// the key is that of another order
}

func ExampleClaim() {
	ctx := context.Background()
	guard, err := idempotency.New(connect(), "orders", idempotency.Retry{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := guard.Begin(ctx, "order-17", "")
	if err != nil {
		log.Fatal(err)
	}
	first := answer.Claim
	_, err = guard.Begin(ctx, "order-17", "")
	fmt.Println(errors.Is(err, idempotency.ErrInFlight))
	fmt.Println(first.Conclude(ctx, idempotency.NothingDone())) // it has done nothing, so the next caller may run

	answer, err = guard.Begin(ctx, "order-17", "")
	if err != nil {
		log.Fatal(err)
	}
	second := answer.Claim
	fmt.Println(second.Attempt(), second.Fence() > first.Fence(), first.Err())
	fmt.Println(second.Conclude(ctx, idempotency.DoneWithout()), second.Err())
	// Output:
	// true
	// <nil>
	// 2 true idempotency: the claim is concluded
	// <nil> idempotency: the claim is concluded
}

func ExampleGuard_Resolve() {
	ctx := context.Background()
	guard, err := idempotency.New(connect(), "charges", idempotency.Reject{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	charge := func(ctx context.Context) ([]byte, error) { return nil, errors.New("the provider did not answer") }
	_, err = guard.Do(ctx, "order-17", charge)
	fmt.Println(err)
	_, err = guard.Do(ctx, "order-17", charge) // it is not called, because the card may have been charged
	fmt.Println(err)

	record, err := guard.Inspect(ctx, "order-17")
	fmt.Println(record.State, record.Attempt, err)
	// An operator looks it up at the provider.
	fmt.Println(guard.Resolve(ctx, "order-17", idempotency.DoneWith([]byte("charge 99"))))
	receipt, err := guard.Do(ctx, "order-17", charge)
	fmt.Println(string(receipt), err)
	// Output:
	// the provider did not answer
	// idempotency: in doubt
	// in doubt 1 <nil>
	// <nil>
	// charge 99 <nil>
}

// Await waits for the run of another caller, so that a repeated request gets its result.
func ExampleGuard_Await() {
	ctx := context.Background()
	guard, err := idempotency.New(connect(), "orders", idempotency.Retry{}, &idempotency.Options{Wait: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := guard.Begin(ctx, "order-17", "tea")
	if err != nil {
		log.Fatal(err)
	}
	go func() { // the first request is still at work
		if err := answer.Claim.Conclude(ctx, idempotency.DoneWith([]byte("booked"))); err != nil {
			log.Print(err)
		}
	}()
	repeat, err := guard.Await(ctx, "order-17", "tea")
	fmt.Println(repeat.Done, string(repeat.Result), err)
	// Output: true booked <nil>
}

// If a charge was begun and not concluded, the guard asks the provider what became of it
// before it is begun again.
func ExampleOutcome() {
	charges := map[string]string{"order-17": "charge 99"} // what the provider knows
	guard, err := idempotency.New(connect(), "charges", idempotency.Reconcile{
		Find: func(_ context.Context, c *idempotency.Claim) (idempotency.Outcome, error) {
			charge, found := charges[c.Key()]
			switch {
			case !found:
				return idempotency.NothingDone(), nil // it may be charged
			case charge == "":
				return idempotency.DoneWithout(), nil // it was charged, and there is no receipt
			case charge == "pending":
				return idempotency.Unknown(), nil // the next caller asks again
			}
			return idempotency.DoneWith([]byte(charge)), nil
		},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	charge := func(context.Context) ([]byte, error) { return nil, errors.New("the provider did not answer") }
	for range 2 {
		receipt, err := guard.Do(context.Background(), "order-17", charge)
		fmt.Printf("%q %v\n", receipt, err)
	}
	// Output:
	// "" the provider did not answer
	// "charge 99" <nil>
}

// The work gives the database the claim's fence, so that a stale run cannot overwrite a
// later one.
func ExampleFromContext() {
	book := func(ctx context.Context) ([]byte, error) {
		claim, ok := idempotency.FromContext(ctx)
		if !ok {
			return nil, errors.New("book must run under a claim")
		}
		fmt.Println("booking", claim.Key(), claim.Attempt(), claim.Fence() > 0)
		return []byte("booked"), nil
	}
	guard, err := idempotency.New(connect(), "orders", idempotency.Retry{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	result, err := guard.Do(context.Background(), "order-17", book)
	fmt.Println(string(result), err)
	// Output:
	// booking order-17 1 true
	// booked <nil>
}

// Redis is away, and the database has a unique key.
func ExampleGuard_WithFail() {
	rdb := redistest.Embedded()
	guard, err := idempotency.New(rdb, "orders", idempotency.Retry{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	guard, err = guard.WithFail(idempotency.RunUnguarded)
	if err != nil {
		log.Fatal(err)
	}
	rdb.Close() // it stands for an outage
	answer, err := guard.Begin(context.Background(), "order-17", "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Claim.Unguarded() != nil, answer.Claim.Fence())
	// Output: true 0
}
