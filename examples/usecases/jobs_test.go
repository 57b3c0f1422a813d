package usecases

import (
	"context"
	"errors"
	"sync"
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
