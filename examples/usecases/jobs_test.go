package usecases

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/neaptest"
)

// TestRunReports runs five processes for three hours. The first run of an hour fails, so
// that another process takes over.
func TestRunReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := neaptest.New(t)
		var mu sync.Mutex
		began, completed := map[int]int{}, map[int]int{}
		report := func(context.Context) error {
			hour := time.Now().Hour()
			mu.Lock()
			began[hour]++
			failed := began[hour] == 1
			mu.Unlock()
			time.Sleep(time.Minute) // the other processes ask meanwhile
			if failed {
				return errors.New("the database is gone")
			}
			mu.Lock()
			completed[hour]++
			mu.Unlock()
			return nil
		}
		ctx, shutDown := context.WithCancel(t.Context())
		var processes sync.WaitGroup
		for i := range 5 {
			jobs, err := lock.New(redis.Client(), "jobs", nil)
			if err != nil {
				t.Fatal(err)
			}
			processes.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Minute) // they start at different times
				if err := RunReports(ctx, jobs, time.Hour, report); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want Canceled", err)
				}
			})
		}
		time.Sleep(3*time.Hour + 30*time.Minute)
		shutDown()
		processes.Wait()
		if len(began) != 3 {
			t.Errorf("got runs in %d hours, want 3", len(began))
		}
		for hour, n := range began {
			if n != 2 || completed[hour] != 1 {
				t.Errorf("hour %d: got %d runs and %d that completed, want 2 and 1", hour, n, completed[hour])
			}
		}
	})
}

// TestRunReportsTakesOver: a process dies at a tick, and its lease is longer than two
// ticks. That tick and those after it are run by the other process.
func TestRunReportsTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const every = 4 * time.Second
		redis := neaptest.New(t)
		open := func(opts lock.Options) *lock.Locker {
			opts.Lease = 10 * time.Second
			jobs, err := lock.New(redis.Client(), "jobs", &opts)
			if err != nil {
				t.Fatal(err)
			}
			return jobs
		}
		jobs, dying := open(lock.Options{}), open(lock.Options{NoRenewal: true})
		ctx, shutDown := context.WithCancel(t.Context())
		var processes sync.WaitGroup
		tick := time.Now().Truncate(every).Add(every)
		processes.Go(func() {
			time.Sleep(time.Until(tick) - time.Millisecond)
			_, _ = dying.Once(ctx, "report", tick, lock.Again, func(context.Context) error {
				<-ctx.Done() // of a dead process nothing is heard
				return ctx.Err()
			})
		})
		var completed atomic.Int64
		processes.Go(func() {
			err := RunReports(ctx, jobs, every, func(ctx context.Context) error {
				time.Sleep(time.Second)
				if ctx.Err() == nil {
					completed.Add(1)
				}
				return ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want Canceled", err)
			}
		})
		time.Sleep(time.Until(tick.Add(3*every + 3*time.Second)))
		if n := completed.Load(); n != 4 {
			t.Errorf("got %d ticks that completed, want 4", n)
		}
		shutDown()
		processes.Wait()
	})
}
