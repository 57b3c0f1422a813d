package idempotency

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// When no caller waits for a key, the guard forgets it.
func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		g, err := New(storetest.At(t, rdb, prefix), "test", Retry{}, &Options{Budget: 5 * time.Second, Wait: 200 * time.Millisecond, RetryDelay: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		for i := range 60 {
			key := string(rune('a' + i%3))
			wg.Go(func() {
				run, err := g.Await(ctx, key, "")
				if err != nil && !errors.Is(err, ErrInFlight) && !errors.Is(err, context.Canceled) {
					t.Errorf("Await: got %v, want no error, %v or %v", err, ErrInFlight, context.Canceled)
				}
				if run.Claim != nil && i%2 == 0 {
					_ = run.Claim.Conclude(ctx, DoneWith(nil))
				}
			})
			if i == 40 {
				cancel()
			}
		}
		wg.Wait()
		g.watch.mu.Lock()
		defer g.watch.mu.Unlock()
		if n := len(g.watch.groups); n != 0 {
			t.Errorf("got %d keys remembered, want 0", n)
		}
	})
}

// A waiter does not miss a run that ends after it has joined and before it waits.
func TestNoEndIsMissed(t *testing.T) {
	t.Parallel()
	var w watchers
	a, b := waiter{of: &w, key: "key"}, waiter{of: &w, key: "key"}
	a.join()
	b.join()
	w.notify("key")
	for _, w := range []*waiter{&a, &b} {
		if got := w.wait(t.Context(), nil, time.Hour); got != toAsk {
			t.Errorf("wait: got %v, want %v", got, toAsk)
		}
		w.join()
	}
	if a.group != b.group || a.leads || b.leads {
		t.Error("two that wait again: got two groups or a leader, want one group and no leader")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for got := toAsk; got != canceled; { // a waiter that leads may be told to ask first
		got = a.wait(ended, nil, 2)
	}
	a.leave()
	if got := b.wait(t.Context(), nil, 2); got != toAsk || !b.leads {
		t.Errorf("when the leader has left: got %v, leads %t, want %v, true", got, b.leads, toAsk)
	}
	b.leave()
	if len(w.groups) != 0 {
		t.Errorf("got the groups %v, want none", w.groups)
	}
}
