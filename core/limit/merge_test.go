package limit_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestMergedOnServers has many callers of some subjects at the same time, on real servers. Their
// calls are merged, and exactly the limit of each subject is admitted.
func TestMergedOnServers(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		merges := newHeldFirst()
		close(merges.open)
		rdb.AddHook(merges)
		const most, subjects, callers = 100, 20, 256
		for _, p := range []limit.Policy{
			limit.TokenBucket{Rate: 1, Per: time.Hour, Burst: most}, limit.TokenBucket{Rate: 1001, Per: time.Second, Burst: most},
			limit.FixedWindow{Limit: most, Window: time.Hour}, limit.SlidingWindow{Limit: most, Window: time.Hour},
		} {
			st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Queue: store.Queued})
			l := must(limit.New(st, "merged", []limit.Policy{p}, closed(patience)))(t)
			must(0, l.Warm(t.Context()))(t)
			var granted [subjects]atomic.Int64
			began := time.Now()
			together(callers, func(n int) {
				for i := range subjects * 2 {
					of, cost := (n+i)%subjects, int64(1+i%2)
					d, err := l.TakeN(t.Context(), fmt.Sprint(of), cost)
					if err != nil {
						t.Errorf("%+v: got %v, want a decision", p, err)
					}
					if d.Allowed {
						granted[of].Add(cost)
					}
				}
			})
			limited := int64(most)
			if p, is := p.(limit.TokenBucket); is && p.Rate > 1 { // it refills while it is asked
				limited += 1 + int64(1001*time.Since(began).Seconds())
			}
			for i := range granted {
				if n := granted[i].Load(); n < most || n > limited {
					t.Errorf("%+v, subject %d: got %d permits granted, want %d to %d", p, i, n, most, limited)
				}
			}
		}
		if merges.merged.Load() == 0 {
			t.Error("got no merged call, want some")
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// TestMergedCountsNothingElse: a merged call leaves alone what no script wrote, and the script of
// one request decides.
func TestMergedCountsNothingElse(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	rdb, merges := srv.Client(t), newHeldFirst()
	close(merges.open)
	rdb.AddHook(merges)
	st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Queue: store.Queued})
	l := must(limit.New(st, "odd", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, closed(patience)))(t)
	for held, want := range map[string]struct {
		granted int64
		left    string
	}{"9.5": {0, "9.5"}, "-3": {13, "10"}} {
		key := prefix + ":limit:odd:{" + held + "}:window-10-1h"
		if err := srv.Admin(t).Set(t.Context(), key, held, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		var granted atomic.Int64
		together(30, func(int) {
			if must(l.Take(t.Context(), held))(t).Allowed {
				granted.Add(1)
			}
		})
		if left := srv.Admin(t).Get(t.Context(), key).Val(); granted.Load() != want.granted || left != want.left {
			t.Errorf("%s: got %d granted and %s in the key, want %d and %s", held, granted.Load(), left, want.granted, want.left)
		}
	}
	if merges.merged.Load() == 0 {
		t.Error("got no merged call, want some")
	}
}
