package undo_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
)

// lost is a client no reply to which arrives.
type lost struct{}

func (lost) Process(_ context.Context, cmd redis.Cmder) error {
	_ = cmd.Args() // it is sent
	cmd.SetErr(io.EOF)
	return io.EOF
}

// TestMemoryOfAGrantInDoubt: each takes less than 1 kB, as docs/design.md says, and
// the attempts of the moment take memory too. The breaker of a limit on requests in
// flight lets few calls be lost.
func TestMemoryOfAGrantInDoubt(t *testing.T) { //nolint:paralleltest // it measures the heap
	const many, goroutines, most = 3000, 10, 1500
	locker, err1 := lock.New(lost{}, "memory", &lock.Options{Budget: time.Millisecond})
	guard, err2 := idempotency.New(lost{}, "memory", &idempotency.Options{Budget: time.Millisecond})
	slots, err3 := limit.NewConcurrency(lost{}, "memory", 1, &limit.ConcurrencyOptions{Fail: limit.FailClosed})
	shop, err4 := stock.New(lost{}, "memory", &stock.Options{Budget: time.Millisecond})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, c := range []struct {
		name    string
		ask     func(key string) error
		undoing func() int
	}{
		{"lock", func(key string) error { _, err := locker.Try(t.Context(), key); return err }, func() int { return locker.Stats().Undoing }},
		{"claim", func(key string) error { _, _, err := guard.Begin(t.Context(), key, key); return err }, func() int { return guard.Stats().Undoing }},
		{"slot", func(key string) error { _, err := slots.Acquire(t.Context(), key); return err }, func() int { return slots.Stats().Undoing }},
		{"reservation", func(key string) error { _, err := shop.Reserve(t.Context(), key, "b", "i", nil); return err }, func() int { return shop.Stats().Undoing }},
	} {
		before := heap()
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for i := g; i < many; i += goroutines {
					if c.ask(fmt.Sprintf("param:order=%020d", i)) == nil {
						t.Errorf("a %s is granted without an answer", c.name)
					}
				}
			})
		}
		all.Wait()
		n := c.undoing()
		if n == 0 {
			t.Fatalf("no %s is looked for", c.name)
		}
		each := func() int { return (int(heap()) - int(before)) / n }
		took := each()
		for range 50 { // what the attempts leave behind meanwhile does not count
			if took <= most {
				break
			}
			took = each()
		}
		t.Logf("%d times a %s is looked for, in %d bytes each", n, c.name, took)
		if took > most {
			t.Errorf("a %s that is looked for takes %d bytes, want at most %d", c.name, took, most)
		}
	}
}
