package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func locker(t testing.TB, rdb redis.UniversalClient, prefix string, opts *lock.Options) *lock.Locker {
	t.Helper()
	if opts == nil {
		opts = &lock.Options{}
	}
	own := *opts
	if own.Budget == 0 {
		own.Budget = 5 * time.Second // a busy machine answers late
	}
	l, err := lock.New(storetest.At(t, rdb, prefix), "test", &own)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		ctx := t.Context()
		patient := &lock.Options{Wait: 5 * time.Minute} // a busy machine hands over slowly
		lockers := []*lock.Locker{locker(t, rdb, prefix, patient), locker(t, rdb, prefix, patient), locker(t, rdb, prefix, patient)}
		var wg sync.WaitGroup
		holding, last := false, int64(0)
		for i := range 12 {
			wg.Go(func() {
				for range 20 {
					err := lockers[i%3].Do(ctx, "key", func(ctx context.Context) error {
						held, ok := lock.FromContext(ctx)
						if holding || !ok || held.Fence() <= last {
							t.Errorf("in Do: got another holder %v, a lock %v, want false, true and a fence above %d",
								holding, ok, last)
						}
						holding, last = true, held.Fence()
						err := rdb.Ping(ctx).Err() // the work, during which other callers ask
						holding = false
						return errors.Join(err, ctx.Err())
					})
					if err != nil {
						t.Errorf("Do: got %v, want no error", err)
					}
				}
			})
		}
		wg.Wait()
		for _, l := range lockers {
			if got := l.Stats(); got != (lock.Stats{Granted: 80}) {
				t.Errorf("got stats %+v, want 80 granted", got)
			}
		}
	})
}
