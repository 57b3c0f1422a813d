package limit_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// connect stands for connecting to your Redis.
func connect() *redis.Client { return redistest.Embedded() }

func ExampleNew() {
	limiter, err := limit.New(connect(), "api", []limit.Policy{
		limit.TokenBucket{Name: "burst", Rate: 10, Per: time.Minute, Burst: 2},
		limit.FixedWindow{Name: "hourly", Limit: 1000, Window: time.Hour},
	}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed})
	if err != nil {
		log.Fatal(err) // names every field that is wrong, and the remedy
	}
	for range 3 {
		d, err := limiter.Take(context.Background(), "user-17")
		if err != nil {
			log.Fatal(err) // Redis could not answer
		}
		fmt.Println(d.Allowed, d.Policy, d.Remaining)
	}
	// Output:
	// true burst 1
	// true burst 0
	// false burst 0
}

func ExampleNewLocal() {
	limiter, err := limit.NewLocal("api", []limit.Policy{
		limit.FixedWindow{Limit: 1, Window: time.Minute},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		d, err := limiter.Take(context.Background(), "user-17")
		fmt.Println(d.Allowed, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleLimiter_With() {
	free, err := limit.New(connect(), "api", []limit.Policy{
		limit.FixedWindow{Name: "free", Limit: 10, Window: time.Hour},
	}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed})
	if err != nil {
		log.Fatal(err)
	}
	paid, err := free.With(limit.FixedWindow{Name: "paid", Limit: 10_000, Window: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	d, err := paid.TakeN(context.Background(), "user-17", 100)
	fmt.Println(d.Allowed, d.Policy, d.Remaining, err)
	// Output: true paid 9900 <nil>
}

// A limit that you try out: it is decided and reported, and denies no request.
func ExampleShadow() {
	limiter, err := limit.New(connect(), "api", []limit.Policy{
		limit.FixedWindow{Name: "hourly", Limit: 1000, Window: time.Hour},
		limit.Shadow(limit.FixedWindow{Name: "stricter", Limit: 1, Window: time.Hour}),
	}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		d, err := limiter.Take(context.Background(), "user-17")
		if err != nil {
			log.Fatal(err)
		}
		for state := range d.States() {
			if state.Shadow {
				fmt.Println(d.Allowed, state.Policy, state.Allowed)
			}
		}
	}
	// Output:
	// true stricter true
	// true stricter false
}

func ExampleLimiter_Take() {
	limiter, err := limit.New(connect(), "mail", []limit.Policy{
		limit.TokenBucket{Rate: 10, Per: time.Hour, Burst: 1},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		d, err := limiter.Take(context.Background(), "user-17")
		switch {
		case err != nil:
			log.Fatal(err) // Redis could not answer, and Options.Fail is FailClosed
		case d.Allowed:
			fmt.Println("sending the mail")
		default:
			fmt.Println("try again in", d.RetryAfter.Round(time.Minute))
		}
	}
	// Output:
	// sending the mail
	// try again in 6m0s
}

func ExampleLimiter_Peek() {
	limiter, err := limit.New(connect(), "api", []limit.Policy{
		limit.FixedWindow{Limit: 100, Window: time.Hour},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := limiter.TakeN(ctx, "user-17", 40); err != nil {
		log.Fatal(err)
	}
	for range 2 { // Peek takes nothing
		d, err := limiter.Peek(ctx, "user-17")
		fmt.Println(d.Remaining, "of", d.Limit, err)
	}
	// Output:
	// 60 of 100 <nil>
	// 60 of 100 <nil>
}

// A worker keeps to the limit of an API that it calls.
func ExampleLimiter_Wait() {
	limiter, err := limit.New(connect(), "partner-api", []limit.Policy{
		limit.TokenBucket{Rate: 100, Per: time.Second, Burst: 1},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range 3 {
		if _, err := limiter.Wait(ctx, "all"); err != nil {
			log.Print(err) // ctx has ended, or too many wait
			return
		}
		fmt.Println("call", i+1)
	}
	// Output:
	// call 1
	// call 2
	// call 3
}

func ExampleLimiter_WaitFor() {
	limiter, err := limit.New(connect(), "partner-api", []limit.Policy{
		limit.TokenBucket{Rate: 1, Per: time.Hour},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		d, err := limiter.WaitFor(context.Background(), "all", 1, 5*time.Second)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Allowed, d.RetryAfter.Round(time.Minute)) // denied at once, since an hour is too long
	}
	// Output:
	// true 0s
	// false 1h0m0s
}

// A login that succeeds does not count.
func ExampleDecision_Refund() {
	limiter, err := limit.New(connect(), "logins", []limit.Policy{
		limit.SlidingLog{Limit: 5, Window: 10 * time.Minute},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, password := range []string{"guess", "secret"} {
		d, err := limiter.Take(ctx, "account-17")
		if err != nil || !d.Allowed {
			log.Fatal("refuse the login: ", err)
		}
		if password == "secret" {
			if err := d.Refund(ctx); err != nil {
				log.Print(err) // the login counts until neap has given it back in the background
			}
		}
		state, err := limiter.Peek(ctx, "account-17")
		fmt.Println(password, state.Remaining, err)
	}
	// Output:
	// guess 4 <nil>
	// secret 4 <nil>
}

// The cost of a request is known when it is done: here the tokens of a language model.
func ExampleDecision_Settle() {
	limiter, err := limit.New(connect(), "tokens", []limit.Policy{
		limit.FixedWindow{Name: "hourly", Limit: 10_000, Window: time.Hour, MaxDebt: 5_000},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	d, err := limiter.TakeN(ctx, "user-17", 2_000) // an estimate
	if err != nil || !d.Allowed {
		log.Fatal("deny the request: ", err)
	}
	fmt.Println(d.Remaining)
	s, err := d.Settle(ctx, 2_750) // what it used
	fmt.Println(s.After.Remaining, s.Forgiven, err)
	// Output:
	// 8000
	// 7250 0 <nil>
}

// A request counts for everybody and for its user. If the user has no permit left, the
// request takes none of everybody's.
func ExampleAll() {
	rdb, opts := connect(), &limit.Options{Budget: time.Minute}
	everybody, err := limit.New(rdb, "everybody", []limit.Policy{limit.FixedWindow{Limit: 1000, Window: time.Hour}}, opts)
	if err != nil {
		log.Fatal(err)
	}
	users, err := limit.New(rdb, "users", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, opts)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for range 2 {
		joint, err := limit.All(ctx,
			limit.Ask{Limiter: everybody, Subject: "all"},
			limit.Ask{Limiter: users, Subject: "user-17"},
		)
		if err != nil {
			log.Fatal(err)
		}
		all, err := everybody.Peek(ctx, "all")
		fmt.Println(joint.Allowed, "by ask", joint.Binds, "left for all:", all.Remaining, err)
	}
	// Output:
	// true by ask 1 left for all: 999 <nil>
	// false by ask 1 left for all: 999 <nil>
}
