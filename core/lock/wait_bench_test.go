package lock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// BenchmarkAcquire has callers of one process wait for one lock, each of whom holds it for
// a millisecond. It measures for two seconds how many get it a second, and then how long
// it takes until all of them have been canceled.
func BenchmarkAcquire(b *testing.B) {
	srv := redistest.NewStandalone(b)
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				l, err := lock.New(srv.Client(b), fmt.Sprint("jobs-", n), calm(lock.Options{Wait: time.Hour}))
				if err != nil {
					b.Fatal(err)
				}
				ctx, cancel := context.WithCancel(b.Context())
				var granted atomic.Int64
				var all sync.WaitGroup
				for range n {
					all.Go(func() {
						for ctx.Err() == nil {
							held, err := l.Acquire(ctx, "key")
							if err != nil {
								continue
							}
							granted.Add(1)
							time.Sleep(time.Millisecond)
							_ = held.Release(context.WithoutCancel(ctx))
						}
					})
				}
				redistest.Await(b, time.Minute, "all wait", func() bool { return l.Stats().Waiting >= n-1 && granted.Load() > 10 })
				before, began := granted.Load(), time.Now()
				time.Sleep(2 * time.Second)
				b.ReportMetric(float64(granted.Load()-before)/time.Since(began).Seconds(), "granted/s")
				began = time.Now()
				cancel()
				all.Wait()
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "cancel-ms")
			}
		})
	}
}
