package store_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// BenchmarkReturn has 20,000 open estimates with leases of 4 s, and stops Redis for 1.5 s.
// A decision is asked for every millisecond. It reports when the last decision was degraded
// after the server went on, how long the decisions of the next 8 s took, and how many
// estimates were taken back.
func BenchmarkReturn(b *testing.B) {
	const estimates, lease, stall = 20_000, 4 * time.Second, 1500 * time.Millisecond
	for _, perKey := range []int64{1, 100} {
		b.Run(fmt.Sprintf("%d a key", perKey), func(b *testing.B) {
			srv := redistest.NewStandalone(b)
			rdb := srv.Client(b, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
			st := storetest.Open(b, rdb, store.Options{Prefix: srv.Prefix(b), Queue: store.Queued})
			patient := storetest.Open(b, rdb, store.Options{Prefix: srv.Prefix(b), Queue: store.Queued, Budget: 10 * time.Second})
			month := limit.WithLease(limit.FixedWindow{Limit: 100 * perKey, Window: 30 * 24 * time.Hour}, lease)
			quota, err := limit.New(patient, "quota", []limit.Policy{month}, &limit.Options{Fail: store.FailClosed})
			if err != nil {
				b.Fatal(err)
			}
			asked, err := limit.New(st, "asked", []limit.Policy{limit.FixedWindow{Limit: 1_000_000, Window: time.Hour}}, nil)
			if err != nil {
				b.Fatal(err)
			}
			decisions := make([]limit.Decision, estimates)
			var next atomic.Int64
			var all sync.WaitGroup
			for range 256 {
				all.Go(func() {
					for i := next.Add(1) - 1; i < estimates; i = next.Add(1) - 1 {
						d, err := quota.TakeN(b.Context(), strconv.FormatInt(i/perKey, 10), 100)
						if err != nil || !d.Allowed {
							b.Errorf("estimate %d: %v", i, err)
							return
						}
						decisions[i] = d
					}
				})
			}
			all.Wait()
			time.Sleep(lease)
			srv.Pause(b)
			time.Sleep(stall)
			srv.Resume(b)
			returned := time.Now()
			var mu sync.Mutex
			var took []time.Duration
			last, degraded := time.Duration(0), 0
			for tick := time.NewTicker(time.Millisecond); time.Since(returned) < 8*time.Second; <-tick.C {
				all.Go(func() {
					began := time.Now()
					d, _ := asked.Take(b.Context(), "someone")
					mu.Lock()
					defer mu.Unlock()
					took = append(took, time.Since(began))
					if d.Degraded {
						last, degraded = max(last, time.Since(returned)), degraded+1
					}
				})
			}
			all.Wait()
			lost := 0
			for _, d := range decisions {
				if _, err := d.Settle(b.Context(), 100); err != nil {
					lost++
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(degraded), "degraded")
			b.ReportMetric(float64(last.Milliseconds()), "ms-last-degraded")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-max")
			b.ReportMetric(float64(lost), "not-settled")
			b.ReportMetric(0, "ns/op")
		})
	}
}
