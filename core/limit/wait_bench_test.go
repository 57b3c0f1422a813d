package limit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// BenchmarkWaitFor has callers wait for one subject, while other processes take a tenth of
// its permits. It measures for two seconds how many permits they get a second, and how
// long a caller waits that asks for a subject without a queue. Each caller that was served
// is followed by another.
func BenchmarkWaitFor(b *testing.B) {
	srv := redistest.NewStandalone(b)
	rdb := srv.Client(b, func(o *redis.Options) {
		o.ContextTimeoutEnabled = true
		o.PoolSize = 64
	})
	for _, waiters := range []int{100, 10_000, 100_000} {
		for _, rate := range []int64{100, 1000} {
			b.Run(fmt.Sprintf("%d/%d", waiters, rate), func(b *testing.B) {
				for b.Loop() {
					waitBench(b, rdb, waiters, rate)
				}
			})
		}
	}
}

func waitBench(b *testing.B, rdb *redis.Client, waiters int, rate int64) {
	b.Helper()
	policies := []limit.Policy{limit.TokenBucket{Rate: rate, Per: time.Second, Burst: rate / 10}}
	opts := &limit.Options{Fail: store.FailClosed, MaxWaiting: 2 * waiters, Budget: 5 * time.Second}
	l := must(limit.New(rdb, "bench", policies, opts))(b)
	other := must(limit.New(rdb, "bench", policies, opts))(b)
	subject := fmt.Sprintf("s%d", time.Now().UnixNano())
	ctx, cancel := context.WithCancel(b.Context())
	var granted, denied atomic.Int64
	most := time.Duration(waiters) * time.Second / time.Duration(rate) // the last of them is just in time
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			for ctx.Err() == nil {
				if d, err := l.WaitFor(ctx, subject, 1, most); err == nil && d.Allowed {
					granted.Add(1)
				} else if err == nil {
					denied.Add(1)
					_, _ = l.Wait(ctx, subject)
				}
			}
		})
	}
	redistest.Await(b, time.Minute, "all wait", func() bool {
		return l.Stats().Waiting >= waiters && granted.Load() > rate // the burst, and then some in their turn
	})
	all.Go(func() {
		for ctx.Err() == nil {
			_, _ = other.Take(ctx, subject)
			time.Sleep(10 * time.Second / time.Duration(rate))
		}
	})
	time.Sleep(500 * time.Millisecond)
	granted.Store(0)
	denied.Store(0)
	began := time.Now()
	var free []time.Duration
	for time.Since(began) < 2*time.Second {
		asked := time.Now()
		_ = must(l.WaitFor(ctx, fmt.Sprintf("free%d", len(free)), 1, time.Second))(b)
		free = append(free, time.Since(asked))
		time.Sleep(5 * time.Millisecond)
	}
	b.ReportMetric(float64(granted.Load())/time.Since(began).Seconds(), "granted/s")
	b.ReportMetric(float64(denied.Load())/time.Since(began).Seconds(), "denied/s")
	slices.Sort(free)
	b.ReportMetric(float64(free[len(free)/2].Microseconds())/1000, "free-ms")
	b.ReportMetric(float64(free[len(free)*99/100].Microseconds())/1000, "free-p99-ms")
	began = time.Now()
	cancel()
	all.Wait()
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "cancel-ms")
}
