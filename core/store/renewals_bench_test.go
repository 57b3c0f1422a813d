package store_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// BenchmarkRenewals holds 100,000 slots with leases of 30 s for one lease, and reports what
// their renewals cost of a core: redis-% of the server that is busiest, and go-% of this
// process. One run takes a minute or two, whatever -benchtime is.
func BenchmarkRenewals(b *testing.B) {
	const grants, lease = 100_000, 30 * time.Second
	standalone := func(b *testing.B) (redis.UniversalClient, []*redistest.Server) {
		srv := redistest.NewStandalone(b)
		return srv.Client(b, func(o *redis.Options) { o.ContextTimeoutEnabled = true }), []*redistest.Server{srv}
	}
	cluster := func(b *testing.B) (redis.UniversalClient, []*redistest.Server) {
		c := redistest.NewCluster(b)
		return c.Client(b, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true }), c.Nodes()
	}
	for _, row := range []struct {
		on     string
		start  func(b *testing.B) (redis.UniversalClient, []*redistest.Server)
		perKey int
	}{
		{"standalone", standalone, 1}, {"standalone", standalone, 100}, {"cluster", cluster, 1}, {"cluster", cluster, 100},
	} {
		b.Run(fmt.Sprintf("%s/%d a key", row.on, row.perKey), func(b *testing.B) {
			rdb, servers := row.start(b)
			st := storetest.Open(b, rdb, store.Options{Prefix: redistest.Prefix(b), Queue: store.Queued, Budget: 10 * time.Second})
			c, err := inflight.New(st, "slots", grants, &inflight.Options{Lease: lease, Fail: store.FailClosed})
			if err != nil {
				b.Fatal(err)
			}
			slots := make([]*inflight.Slot, grants)
			var next atomic.Int64
			var all sync.WaitGroup
			for range 256 {
				all.Go(func() {
					for i := next.Add(1) - 1; i < grants; i = next.Add(1) - 1 {
						s, err := c.Try(b.Context(), strconv.Itoa(int(i)/row.perKey))
						if err != nil || !s.Allowed {
							b.Errorf("slot %d: %v", i, err)
							return
						}
						slots[i] = s
					}
				})
			}
			all.Wait()
			time.Sleep(lease / 3)
			cpu, scripts, took := processCPU(), redisCPU(b, servers), time.Now()
			time.Sleep(lease)
			span := time.Since(took).Seconds()
			b.ReportMetric(100*(processCPU()-cpu)/span, "go-%")
			busiest := 0.0
			for i, cpu := range redisCPU(b, servers) {
				busiest = max(busiest, cpu-scripts[i])
			}
			b.ReportMetric(100*busiest/span, "redis-%")
			b.ReportMetric(0, "ns/op")
			next.Store(0)
			for range 256 {
				all.Go(func() {
					for i := next.Add(1) - 1; i < grants; i = next.Add(1) - 1 {
						_ = slots[i].Release(b.Context())
					}
				})
			}
			all.Wait()
		})
	}
}

// processCPU returns the seconds of CPU that this process has used.
func processCPU() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// redisCPU returns the seconds of CPU that each server has used.
func redisCPU(b *testing.B, servers []*redistest.Server) []float64 {
	b.Helper()
	used := make([]float64, len(servers))
	for i, srv := range servers {
		text, err := srv.Admin(b).Info(b.Context(), "cpu").Result()
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "used_cpu_user" || name == "used_cpu_sys" {
				n, _ := strconv.ParseFloat(value, 64)
				used[i] += n
			}
		}
	}
	return used
}
