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

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// BenchmarkRenewals holds 100,000 slots with leases of 30 s for one lease, and reports what
// their renewals cost of a core: redis-% of Redis, and go-% of this process. One run takes
// a minute or two, whatever -benchtime is.
func BenchmarkRenewals(b *testing.B) {
	const grants, lease = 100_000, 30 * time.Second
	for _, perKey := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d a key", perKey), func(b *testing.B) {
			srv := redistest.NewStandalone(b)
			rdb := srv.Client(b, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
			st := storetest.Open(b, rdb, store.Options{Prefix: srv.Prefix(b), Queue: store.Queued, Budget: 10 * time.Second})
			c, err := limit.NewConcurrency(st, "slots", grants, &limit.ConcurrencyOptions{Lease: lease, Fail: limit.FailClosed})
			if err != nil {
				b.Fatal(err)
			}
			slots := make([]*limit.Slot, grants)
			var next atomic.Int64
			var all sync.WaitGroup
			for range 256 {
				all.Go(func() {
					for i := next.Add(1) - 1; i < grants; i = next.Add(1) - 1 {
						s, err := c.Try(b.Context(), strconv.Itoa(int(i)/perKey))
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
			cpu, scripts, took := processCPU(), redisCPU(b, srv.Admin(b)), time.Now()
			time.Sleep(lease)
			span := time.Since(took).Seconds()
			b.ReportMetric(100*(processCPU()-cpu)/span, "go-%")
			b.ReportMetric(100*(redisCPU(b, srv.Admin(b))-scripts)/span, "redis-%")
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

// redisCPU returns the seconds of CPU that the server has used.
func redisCPU(b *testing.B, rdb redis.Cmdable) (seconds float64) {
	b.Helper()
	text, err := rdb.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			n, _ := strconv.ParseFloat(value, 64)
			seconds += n
		}
	}
	return seconds
}
