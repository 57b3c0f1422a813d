package store_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// BenchmarkBusyProcess reports how many of 1,000 decisions are made without Redis
// although it answers at once. The process has one processor for 100 callers and for
// goroutines that compute. With the queue, at most 1 is accepted.
func BenchmarkBusyProcess(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	srv := redistest.NewStandalone(b)
	for _, busy := range []struct {
		name string
		n    int
	}{{"2 compute", 2}, {"4 compute", 4}, {"8 compute", 8}} {
		for name, mode := range map[string]store.QueueMode{"direct": store.Direct, "queued": store.Queued} {
			for _, timeouts := range []bool{false, true} {
				if timeouts {
					name += " ContextTimeoutEnabled"
				}
				b.Run(busy.name+"/"+name, func(b *testing.B) {
					rdb := srv.Client(b, func(o *redis.Options) {
						o.PoolSize, o.MinIdleConns, o.ContextTimeoutEnabled = 100, 100, timeouts
					})
					st := storetest.Open(b, rdb, store.Options{Prefix: redistest.Prefix(b), Queue: mode})
					l := aLimitOf(b, st, 1e9, nil)
					if err := l.Warm(b.Context()); err != nil {
						b.Fatal(err)
					}
					var stop atomic.Bool
					var computing, calling sync.WaitGroup
					for range busy.n {
						computing.Go(func() {
							n := 0
							for !stop.Load() {
								n++
							}
							runtime.KeepAlive(n)
						})
					}
					before := l.Stats()
					began := time.Now()
					for range 100 {
						calling.Go(func() {
							for time.Since(began) < 3*time.Second {
								if _, err := l.Take(b.Context(), "s"); err != nil {
									b.Errorf("Take: got %v, want no error", err)
									return
								}
							}
						})
					}
					calling.Wait()
					stop.Store(true)
					computing.Wait()
					after := l.Stats()
					n := after.Allowed - before.Allowed
					b.ReportMetric(1000*float64(after.Degraded-before.Degraded)/float64(n), "degraded/1000")
					b.ReportMetric(float64(n)/time.Since(began).Seconds(), "decisions/s")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
