package undo_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// lost is a client to which no reply comes.
type lost struct{}

func (lost) Process(ctx context.Context, cmd redis.Cmder) error {
	redistest.Write(cmd)
	<-ctx.Done()
	cmd.SetErr(ctx.Err())
	return ctx.Err()
}

// TestMemoryOfAGrantInDoubt: each takes less than 1 kB, as docs/design/doubt.md says, and
// the running attempts take memory too. The callers give up early, which opens no
// breaker; an open breaker would let too few calls be lost.
func TestMemoryOfAGrantInDoubt(t *testing.T) { //nolint:paralleltest // it measures the heap
	const many, goroutines, most, budget = 3000, 10, 1500, 10 * time.Second
	locker, err1 := lock.New(lost{}, "memory", &lock.Options{Budget: budget})
	guard, err2 := idempotency.New(lost{}, "memory", idempotency.Retry{}, &idempotency.Options{Budget: budget})
	slots, err3 := inflight.New(lost{}, "memory", 1, &inflight.Options{Budget: budget, Fail: store.FailClosed})
	shop, err4 := stock.New(lost{}, "memory", &stock.Options{Budget: budget})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		ask     func(ctx context.Context, key string) error
		undoing func() int
	}{
		{"lock", func(ctx context.Context, key string) error { _, err := locker.Try(ctx, key); return err }, func() int { return locker.Stats().Undoing }},
		{"claim", func(ctx context.Context, key string) error { _, err := guard.Begin(ctx, key, key); return err }, func() int { return guard.Stats().Undoing }},
		{"slot", func(ctx context.Context, key string) error { _, err := slots.Try(ctx, key); return err }, func() int { return slots.Stats().Undoing }},
		{"reservation", func(ctx context.Context, key string) error {
			_, err := shop.Reserve(ctx, key, "b", "i", nil)
			return err
		}, func() int { return shop.Stats().Undoing }},
	} {
		before := redistest.HeapInUse()
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for i := g; i < many; i += goroutines {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					if c.ask(ctx, fmt.Sprintf("param:order=%020d", i)) == nil {
						t.Errorf("a %s without an answer: got it granted, want an error", c.name)
					}
					cancel()
				}
			})
		}
		all.Wait()
		n := c.undoing()
		if n == 0 {
			t.Fatalf("searches: got none for a %s, want some", c.name)
		}
		each := func() int { return (int(redistest.HeapInUse()) - int(before)) / n }
		took := each()
		for range 50 { // what the attempts leave behind meanwhile does not count
			if took <= most {
				break
			}
			took = each()
		}
		t.Logf("%d times a %s is looked for, in %d bytes each", n, c.name, took)
		if took > most {
			t.Errorf("a search for a %s: got %d bytes, want at most %d", c.name, took, most)
		}
	}
}
