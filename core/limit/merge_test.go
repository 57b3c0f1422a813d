package limit_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
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
		const most, subjects = 100, 20
		callers := redistest.Ops(256)
		bucket, fast := limit.TokenBucket{Rate: 1, Per: time.Hour, Burst: most}, limit.TokenBucket{Rate: 1001, Per: time.Second, Burst: most}
		window, sliding := limit.FixedWindow{Limit: most, Window: time.Hour}, limit.SlidingWindow{Limit: most, Window: time.Hour}
		log, month := limit.SlidingLog{Limit: most, Window: time.Hour}, limit.CalendarWindow{Limit: most, Every: limit.Month}
		kept := limit.KeepOnChange(limit.TokenBucket{Name: "kept", Rate: 1, Per: time.Hour, Burst: most})
		brief := limit.Ban{After: 1_000_000, Within: time.Hour, For: time.Hour}
		for i, policies := range [][]limit.Policy{
			{bucket}, {fast}, {window}, {sliding}, {log}, {month}, {kept},
			{bucket, month}, {sliding, log}, {kept, limit.Shadow(window)}, {limit.WithBan(window, brief)},
		} {
			p, before := policies[0], merges.merged.Load()
			st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Queue: store.Queued})
			l := must(limit.New(st, fmt.Sprint("merged", i), policies, closed(patience)))(t)
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
			if merges.merged.Load() == before {
				t.Errorf("%+v: got no merged call, want some", policies)
			}
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// TestMergedDenialsNeedNoMemory: Redis refuses what a merged call writes for one subject while
// its memory is full, and the denials of another are made all the same.
func TestMergedDenialsNeedNoMemory(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory-policy", "noeviction")
	rdb, merges := srv.Client(t), newHeldFirst()
	close(merges.open)
	rdb.AddHook(merges)
	st := storetest.Open(t, rdb, store.Options{Prefix: srv.Prefix(t), Queue: store.Queued})
	l := must(limit.New(st, "full", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, closed(patience)))(t)
	must(0, l.Warm(t.Context()))(t)
	take(t, l, "exhausted", 10)
	must(srv.Admin(t).ConfigSet(t.Context(), "maxmemory", "1").Result())(t)
	together(60, func(i int) {
		if i%2 == 0 {
			if d, err := l.Take(t.Context(), "exhausted"); err != nil || d.Allowed {
				t.Errorf("of the exhausted subject: got %v, %v, want a denial", d.Allowed, err)
			}
		} else if _, err := l.Take(t.Context(), "fresh"); !errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("of the other: got %v, want ErrNotExecuted", err)
		}
	})
	if merges.merged.Load() == 0 {
		t.Error("got no merged call, want some")
	}
}

// TestMergedCountsNothingElse: a merged call leaves alone what no script wrote, and decides the
// requests of other subjects. Those of this one end with an error.
func TestMergedCountsNothingElse(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	rdb, merges := srv.Client(t), newHeldFirst()
	close(merges.open)
	rdb.AddHook(merges)
	st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Queue: store.Queued})
	l := must(limit.New(st, "odd", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, closed(patience)))(t)
	for _, held := range []string{"9.5", "-3"} {
		key := prefix + ":limit:odd:{" + held + "}:window-10-1h"
		if err := srv.Admin(t).Set(t.Context(), key, held, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		var granted atomic.Int64
		together(60, func(i int) {
			if i%2 == 0 {
				if _, err := l.Take(t.Context(), held); !errors.Is(err, script.ErrFailed) || !strings.Contains(err.Error(), "no record") {
					t.Errorf("%s: got %v, want an error that says there is no record", held, err)
				}
			} else if must(l.Take(t.Context(), "beside"+held))(t).Allowed {
				granted.Add(1)
			}
		})
		if left := srv.Admin(t).Get(t.Context(), key).Val(); granted.Load() != 10 || left != held {
			t.Errorf("%s: got %d granted to another subject and %s in the key, want 10 and the key as it was", held, granted.Load(), left)
		}
	}
	if merges.merged.Load() == 0 {
		t.Error("got no merged call, want some")
	}
}
