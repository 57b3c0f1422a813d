package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/lock"
)

// deny is the reply that another has the lock, for another hour.
func deny() (any, error) { return -time.Hour.Milliseconds(), nil }

// A waiter that is not woken asks again after half to all of a RetryDelay.
func TestAWaiterAsksAfterARetryDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const delay = 10 * time.Second
		f, l := fakeLocker(t, &lock.Options{RetryDelay: delay, Wait: 4 * time.Hour})
		f.answer(func(int, call) (any, error) { return deny() })
		if _, err := l.Acquire(t.Context(), "key"); !errors.Is(err, lock.ErrHeld) {
			t.Fatalf("Acquire of a held key: got %v, want ErrHeld", err)
		}
		asked := f.of("acquire")
		shortest, longest := delay, time.Duration(0)
		for i, c := range asked[1 : len(asked)-1] { // the last is at the end of the wait
			after := c.at.Sub(asked[i].at)
			shortest, longest = min(shortest, after), max(longest, after)
		}
		if shortest < delay/2 || shortest > delay*6/10 || longest > delay || longest < delay*9/10 {
			t.Errorf("got %d questions, %v to %v apart, want from about half of %v to about all of it",
				len(asked), shortest, longest, delay)
		}
	})
}

// When its wait is over, the first waiter asks once more, however long its RetryDelay is.
func TestTheFirstWaiterAsksOnceMoreWhenItsWaitEnds(t *testing.T) {
	t.Parallel()
	for _, free := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const limit = time.Minute
			f, l := fakeLocker(t, &lock.Options{RetryDelay: time.Hour, Wait: limit})
			f.answer(func(n int, c call) (any, error) {
				if c.script == "acquire" && (n == 1 || !free) {
					return deny()
				}
				return yes(n, c)
			})
			began := time.Now()
			held, err := l.Acquire(t.Context(), "key")
			if took := time.Since(began); took != limit || len(f.of("acquire")) != 2 {
				t.Errorf("got %d questions in %v, want 2 in %v", len(f.of("acquire")), took, limit)
			}
			if !free {
				if !errors.Is(err, lock.ErrHeld) {
					t.Errorf("Acquire of a held key: got %v, want ErrHeld", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			release(t, held)
		})
	}
}

// While Redis is down, Once asks after each RetryDelay, each time with the same hold.
func TestOnceAsksWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const delay, away = time.Minute, time.Hour
		f, l := fakeLocker(t, &lock.Options{RetryDelay: delay})
		began := time.Now()
		f.answer(func(n int, c call) (any, error) {
			if time.Since(began) < away {
				return refuse()
			}
			return yes(n, c)
		})
		if ran, err := l.Once(t.Context(), "job", began, lock.Again, fine); !ran || err != nil {
			t.Fatalf("Once while Redis is away: got ran %v, %v, want a run in the end", ran, err)
		}
		rounds, last := 0, began.Add(-delay)
		for _, c := range f.of("start") {
			if c.at.Sub(last) > delay/2 { // a round is not a repetition of a lost call
				rounds++
			}
			last = c.at
			if c.args[0] != f.of("start")[0].args[0] {
				t.Fatalf("a later start: got the hold %v, want %v as at first", c.args[0], f.of("start")[0].args[0])
			}
		}
		if all := len(f.of("start")); rounds < 50 || rounds > 61 || all > 61*10 {
			t.Errorf("got %d calls in %d rounds, want at most 610 in 50 to 61", all, rounds)
		}
	})
}

// An owner does not change how often a tick runs. An owner in the same process waits like
// any other caller, and causes no more calls.
func TestOnceIgnoresOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, l := fakeLocker(t, &lock.Options{RetryDelay: time.Hour})
		l = l.As("owner")
		tick := time.Now()
		var waits sync.WaitGroup
		ran, err := l.Once(t.Context(), "job", tick, lock.Again, func(context.Context) error {
			f.answer(func(n int, c call) (any, error) {
				if c.script == "start" {
					return int64(0), nil // the run has begun
				}
				return yes(n, c)
			})
			for range 3 {
				waits.Go(func() {
					if ran, err := l.Once(t.Context(), "job", tick, lock.Again, fine); ran || err != nil {
						t.Errorf("Once while the tick runs here: got ran %v, %v, want false and no error", ran, err)
					}
				})
			}
			synctest.Wait()
			if asked, s := len(f.of("start")), l.Stats(); asked != 1 || s.Waiting != 3 {
				t.Errorf("while the tick ran: got %d questions and stats %+v, want 1 and 3 waiting", asked, s)
			}
			return nil
		})
		if !ran || err != nil {
			t.Errorf("the first Once: got ran %v, %v, want true and no error", ran, err)
		}
		waits.Wait()
	})
}

// Stats count the grants that are left to lapse because neap looks for too many others.
func TestStatsCountLapsingGrants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, l := fakeLocker(t, nil)
		f.answer(func(_ int, c call) (any, error) {
			if c.script == "acquire" {
				return refuse()
			}
			return int64(-2), nil // no server is there
		})
		const most, over = 100, 3
		l.Room(most)
		var wg sync.WaitGroup
		for range most + over {
			wg.Go(func() {
				if _, err := l.Try(t.Context(), "key"); err == nil {
					t.Error("Try without Redis: got a lock, want an error")
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if got, want := l.Stats(), (lock.Stats{Failed: most + over, Undoing: most, Lapsing: over}); got != want {
			t.Errorf("got stats %+v, want %+v", got, want)
		}
		time.Sleep(2 * defaultLease)
		synctest.Wait()
		if got, want := l.Stats(), (lock.Stats{Failed: most + over, Lapsing: over}); got != want {
			t.Errorf("got stats %+v after the leases, want %+v", got, want)
		}
	})
}
