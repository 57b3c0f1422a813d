package limit

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestTheFallbackCannotBeFlooded measures what a flood of subjects leaves on
// the heap while Redis is away. It is not parallel: the heap is the process's.
func TestTheFallbackCannotBeFlooded(t *testing.T) { //nolint:paralleltest // as said
	for name, c := range map[string]struct { //nolint:paralleltest // as said
		policy   Policy
		subjects int
		takes    int
		pad      string
		maxLocal int
	}{
		"short subjects": {FixedWindow{Limit: 5, Window: time.Hour}, 1_000_000, 1, "", 0},
		"long subjects":  {FixedWindow{Limit: 5, Window: time.Hour}, 50_000, 1, strings.Repeat("x", 4000), 20_000},
		"long logs":      {SlidingLog{Limit: 1000, Window: time.Hour}, 100, 1000, "", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redis.NewClient(&redis.Options{Addr: refused(t), ContextTimeoutEnabled: true})
			defer rdb.Close()
			l, err := New(rdb, "flood", []Policy{c.policy}, &Options{MaxLocal: c.maxLocal})
			if err != nil {
				t.Fatal(err)
			}
			before := heap()
			for i := range c.subjects {
				subject := fmt.Sprint(c.pad, "subject-", i)
				for range c.takes {
					if d, err := l.Take(t.Context(), subject); err != nil || !d.Degraded || !d.Allowed {
						t.Fatalf("%+v, %v", d, err)
					}
				}
			}
			after, most, states := heap(), l.opts.MaxLocal, l.Stats().LocalStates
			each := (int(after) - int(before)) / most
			t.Logf("%d states, %d bytes for each of MaxLocal", states, each)
			if each > 512 || each < 16 {
				t.Errorf("%d bytes are left on the heap for each of MaxLocal", each)
			}
			if states > most {
				t.Errorf("%d states are kept", states)
			}
			runtime.KeepAlive(l)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
