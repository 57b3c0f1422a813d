package lock_test

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// A lock that no other caller wants costs two round trips.
func TestAcquireAndReleaseAreTwoRoundTrips(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	l := locker(t, srv.Client(t), srv.Prefix(t), calm(lock.Options{}))
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, acquire := range map[string]func(context.Context, string) (*lock.Lock, error){"Try": l.Try, "Acquire": l.Acquire} {
		redistest.ResetStats(t, srv.Admin(t))
		const n = 100
		for i := range n {
			held, err := acquire(t.Context(), fmt.Sprint("key", i%3))
			if err != nil {
				t.Fatal(err)
			}
			release(t, held)
		}
		stats := redistest.CommandStats(t, srv.Admin(t))
		if got := stats["evalsha"].Calls; got != 2*n || stats["eval"].Calls+stats["subscribe"].Calls+stats["publish"].Calls != 0 {
			t.Errorf("%s: got %d EVALSHA for %d locks and in all %v, want 2 for each and nothing else",
				name, got, n, stats)
		}
	}
}

func created() uint64 {
	sample := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// A lock that is released before it has to be renewed starts no goroutine. But the queue
// may start one for a call while the process is short of CPU.
func TestAShortLockStartsNoGoroutine(t *testing.T) { //nolint:paralleltest // it counts the goroutines of the process
	srv := redistest.NewStandalone(t)
	rdb := srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	opts := calm(lock.Options{})
	opts.Budget = 5 * time.Second // a busy machine answers late
	l, err := lock.New(storetest.Direct(t, rdb, srv.Prefix(t)), "test", opts)
	if err != nil {
		t.Fatal(err)
	}
	const n = 300
	lock := func() {
		held, err := l.Acquire(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		if held.Context().Err() != nil {
			t.Errorf("the Context of a held lock: got %v, for %v, want it open", held.Context().Err(), held.Err())
		}
		release(t, held)
	}
	lock()
	before := created()
	for range n {
		lock()
	}
	if got := created() - before; got > n/10 { // other goroutines of the process
		t.Errorf("got %d goroutines for %d locks, want at most %d", got, n, n/10)
	}
}

// BenchmarkWaiting measures what 100 waiters cost this process, in hundredths of a core.
func BenchmarkWaiting(b *testing.B) {
	for _, keys := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d keys", keys), func(b *testing.B) {
			srv := redistest.Standalone(b)
			connect := func() *redis.Client {
				return srv.Client(b, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
			}
			prefix := redistest.Prefix(b)
			holder, l := locker(b, connect(), prefix, calm(lock.Options{})), locker(b, connect(), prefix, calm(lock.Options{Wait: time.Hour}))
			var held []*lock.Lock
			for i := range keys {
				one, err := holder.Try(b.Context(), fmt.Sprint("key", i))
				if err != nil {
					b.Fatal(err)
				}
				held = append(held, one)
			}
			var wg sync.WaitGroup
			ctx, cancel := context.WithCancel(b.Context())
			for i := range 100 {
				wg.Go(func() { _, _ = l.Acquire(ctx, fmt.Sprint("key", i%keys)) })
			}
			redistest.Await(b, 10*time.Second, "the callers to wait", func() bool { return l.Stats().Waiting == 100 })
			const window = 2 * time.Second
			var busy, all time.Duration
			for b.Loop() {
				<-time.After(window / 4) // the cost of their start
				before, began := processor(b), time.Now()
				<-time.After(window)
				busy, all = busy+processor(b)-before, all+time.Since(began)
			}
			b.ReportMetric(100*float64(busy)/float64(all), "%core")
			cancel()
			wg.Wait()
			for _, one := range held {
				_ = one.Release(b.Context())
			}
		})
	}
}

// processor is the CPU time that this process has used.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
