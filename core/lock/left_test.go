package lock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// When a key has no holder and no waiter, the locker forgets it, and a little later
// closes its subscription.
func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		var two [2]*Locker
		for i := range two {
			l, err := New(storetest.At(t, rdb, prefix), "test", &Options{Budget: 5 * time.Second, Wait: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			two[i] = l
		}
		l, ctx := two[0], t.Context()
		var wg sync.WaitGroup
		for i := range 50 {
			key := fmt.Sprint("key", i)
			held, err := two[i%2].Try(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				if err := l.Do(ctx, key, func(context.Context) error { return nil }); err != nil {
					t.Errorf("Do of %s: got %v, want no error", key, err)
				}
			})
			redistest.Await(t, 10*time.Second, "it to wait", func() bool { return l.Stats().Waiting == 1 })
			if i%2 == 1 {
				redistest.Await(t, 10*time.Second, "it to listen", func() bool { channels, subscriptions := heard(l); return channels > 0 && subscriptions > 0 })
			}
			if err := held.Release(ctx); err != nil {
				t.Errorf("the release of %s: got %v, want no error", key, err)
			}
			wg.Wait()
		}
		for i, l := range two {
			l.queues.mu.Lock()
			if n := len(l.queues.entries); n != 0 {
				t.Errorf("locker %d remembers %d keys, want 0", i, n)
			}
			l.queues.mu.Unlock()
			redistest.Await(t, 10*time.Second, "the channels and subscriptions to be forgotten", func() bool {
				channels, subscriptions := heard(l)
				return channels == 0 && subscriptions == 0
			})
		}
	})
}

// heard returns how many keys a locker listens to, and on how many connections.
func heard(l *Locker) (channels, subscriptions int) {
	l.notifier.mu.Lock()
	defer l.notifier.mu.Unlock()
	return len(l.notifier.channels), len(l.notifier.subscriptions)
}
