package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// A process that waits for a tick, and by itself asks again only after an hour, is woken
// when the run ends. It is woken whether the run has completed or failed.
func TestTheEndOfARunWakesWaiters(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		l, other := patient(t, rdb, prefix), locker(t, rdb, prefix, unasking())
		for job, end := range map[string]error{"completes": nil, "fails": errJob} {
			tick, told := aTick(), make(chan error, 1)
			ran, err := l.Once(t.Context(), job, tick, lock.Again, func(context.Context) error {
				go func() {
					ran, err := other.Once(t.Context(), job, tick, lock.Again, fine)
					if ran != (end != nil) {
						t.Errorf("%s: Once by the waiter: got ran %v, want %v", job, ran, end != nil)
					}
					told <- err
				}()
				wantsWaking(t, admin, runRecord(prefix, job, tick))
				return end
			})
			if !ran || !errors.Is(err, end) {
				t.Errorf("%s: the first Once: got ran %v, %v, want true and %v", job, ran, err, end)
			}
			select {
			case err := <-told:
				if err != nil {
					t.Errorf("%s: Once by the waiter: got %v, want no error", job, err)
				}
			case <-time.After(soon):
				t.Fatalf("a run that %s: got no waiter woken within %v, want it woken", job, soon)
			}
		}
	})
}
