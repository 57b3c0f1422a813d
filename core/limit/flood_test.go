package limit

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// TestTheFallbackCannotBeFlooded measures what a flood of subjects leaves on
// the heap while Redis is away. It is not parallel: the heap is the process's.
func TestTheFallbackCannotBeFlooded(t *testing.T) { //nolint:paralleltest // as said
	for name, c := range map[string]struct { //nolint:paralleltest // as said
		policy   Policy
		subjects int
		takes    int
		cost     int64
		pad      string
		maxLocal int
	}{
		"short subjects": {FixedWindow{Limit: 5, Window: time.Hour}, max(redistest.Ops(1_000_000), 30_000), 1, 1, "", max(redistest.Ops(100_000), 10_000)},
		"long subjects":  {FixedWindow{Limit: 5, Window: time.Hour}, 10_000, 1, 1, strings.Repeat("x", 4000), 4000},
		"long logs":      {SlidingLog{Limit: 1000, Window: time.Hour}, 100, 10, 100, "", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redis.NewClient(&redis.Options{Addr: refused(t), ContextTimeoutEnabled: true})
			defer rdb.Close()
			l := must(New(rdb, "flood", []Policy{c.policy}, &Options{MaxLocal: c.maxLocal}))(t)
			before := heapInUse()
			for i := range c.subjects {
				subject := fmt.Sprint(c.pad, "subject-", i)
				for range c.takes {
					if d, err := l.TakeN(t.Context(), subject, c.cost); err != nil || !d.Degraded || !d.Allowed {
						t.Fatalf("a take without Redis: got %+v, %v, want it allowed and degraded", d, err)
					}
				}
			}
			after, most, states := heapInUse(), l.opts.MaxLocal, l.Stats().LocalStates
			each := (int(after) - int(before)) / most
			t.Logf("%d states, %d bytes for each of MaxLocal", states, each)
			if each > 512 || each < 16 {
				t.Errorf("got %d bytes left on the heap for each of MaxLocal, want from 16 to 512", each)
			}
			if states > most {
				t.Errorf("got %d states kept, want at most %d", states, most)
			}
			runtime.KeepAlive(l)
		})
	}
}

// TestTheFallbackKnowsHowLongItsLogsAre, whatever is taken, given back, forgotten and
// evicted.
func TestTheFallbackKnowsHowLongItsLogsAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, &Options{MaxLocal: 9}, SlidingLog{Limit: 20, Window: time.Minute}, FixedWindow{Limit: 99, Window: time.Second})
		rng := redistest.Rand(t)
		var made []Decision
		for i := range 2000 {
			made = append(made, must(l.TakeN(t.Context(), fmt.Sprint(rng.IntN(6)), rng.Int64N(20)))(t))
			_ = made[len(made)-1-rng.IntN(min(len(made), 3))].Refund(t.Context())
			if i%50 == 0 {
				must(l.Reset(t.Context(), fmt.Sprint(rng.IntN(6))))(t)
			}
			time.Sleep(time.Duration(rng.Int64N(int64(5 * time.Second))))
			all := 0
			for _, c := range l.local.cells.Values() {
				all += len(c.log)
			}
			if all != l.local.entries {
				t.Fatalf("after %d decisions: got %d entries counted, want the %d that are kept",
					i+1, l.local.entries, all)
			}
		}
	})
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
