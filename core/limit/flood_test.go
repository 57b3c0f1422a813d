package limit_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestTheFallbackCannotBeFlooded measures what a flood of subjects leaves on
// the heap while Redis is away. It is not parallel: the heap is the process's.
func TestTheFallbackCannotBeFlooded(t *testing.T) { //nolint:paralleltest // as said
	for name, c := range map[string]struct { //nolint:paralleltest // as said
		policy   limit.Policy
		subjects int
		takes    int
		cost     int64
		pad      string
		maxLocal int
	}{
		"short subjects": {limit.FixedWindow{Limit: 5, Window: time.Hour}, max(redistest.Ops(1_000_000), 30_000), 1, 1, "", max(redistest.Ops(100_000), 10_000)},
		"long subjects":  {limit.FixedWindow{Limit: 5, Window: time.Hour}, 10_000, 1, 1, strings.Repeat("x", 4000), 4000},
		"long logs":      {limit.SlidingLog{Limit: 1000, Window: time.Hour}, 100, 10, 100, "", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redis.NewClient(&redis.Options{Addr: refused(t), ContextTimeoutEnabled: true})
			defer rdb.Close()
			l := must(limit.New(rdb, "flood", []limit.Policy{c.policy}, &limit.Options{MaxLocal: c.maxLocal}))(t)
			before := redistest.HeapInUse()
			for i := range c.subjects {
				subject := fmt.Sprint(c.pad, "subject-", i)
				for range c.takes {
					if d, err := l.TakeN(t.Context(), subject, c.cost); err != nil || !d.Degraded || !d.Allowed {
						t.Fatalf("a take without Redis: got %+v, %v, want it allowed and degraded", d, err)
					}
				}
			}
			after, most, states := redistest.HeapInUse(), c.maxLocal, l.Stats().LocalStates
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
