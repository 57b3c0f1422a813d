package lock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

var bothWays = []lock.Rerun{lock.Never, lock.Again}

// aTick is an instant that is neither too long ago nor in the future.
func aTick() time.Time { return time.Now().Add(-time.Minute).Truncate(time.Second) }

// patient is a locker for a busy machine: a call may take ten seconds.
func patient(t testing.TB, rdb redis.UniversalClient, prefix string) *lock.Locker {
	t.Helper()
	return locker(t, rdb, prefix, &lock.Options{Budget: 10 * time.Second, FenceRetention: time.Hour})
}

// fine is a job that does nothing and succeeds.
func fine(context.Context) error { return nil }

// assertRan runs one tick, and checks whether it ran here.
func assertRan(t *testing.T, l *lock.Locker, job string, tick time.Time, rerun lock.Rerun, want bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	called := false
	ran, err := l.Once(ctx, job, tick, rerun, func(context.Context) error {
		called = true
		return nil
	})
	if ran != want || called != want || err != nil {
		t.Errorf("Once with %v: got ran %v, called %v, %v, want both %v and no error", rerun, ran, called, err, want)
	}
}

func TestOnceRunsATickOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		a, b := patient(t, rdb, prefix), patient(t, rdb, prefix)
		for _, rerun := range bothWays {
			job, tick := rerun.String(), aTick()
			// A lock whose key is the name of the job is another lock.
			for _, key := range []string{job, fmt.Sprintf("%s}:%d", job, tick.UnixMilli()), fmt.Sprintf("%s:%d", job, tick.UnixMilli())} {
				held, err := b.Try(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				defer held.Release(context.Background())
			}
			ran, err := a.Once(t.Context(), job, tick, rerun, func(ctx context.Context) error {
				held, ok := lock.FromContext(ctx)
				if !ok || held.Fence() == 0 || held.Err() != nil {
					t.Errorf("%v: the lock of a run: got %v, %v, want one that is held", rerun, held, ok)
				}
				// Another tick does not wait for this one, and neither does another job.
				assertRan(t, b, job, tick.Add(time.Millisecond), rerun, true)
				assertRan(t, b, job, tick.Add(time.Hour), rerun, true)
				assertRan(t, b, job+"-other", tick, rerun, true)
				return nil
			})
			if !ran || err != nil {
				t.Fatalf("the first Once: got ran %v, %v, want true and no error", ran, err)
			}
			for _, l := range []*lock.Locker{a, b, b.As("somebody")} {
				assertRan(t, l, job, tick, rerun, false)
				assertRan(t, l, job, tick.Add(time.Microsecond), rerun, false)
			}
			key := fmt.Sprintf("%s:lock:test:{%s}:%d", prefix, job, tick.UnixMilli())
			if n, err := admin.Exists(t.Context(), key).Result(); n != 1 || err != nil {
				t.Errorf("%v: got %d records %s, %v, want 1", rerun, n, key, err)
			}
		}
	})
}

// TestOnceAfterAFailure fails a run in each way in which it can fail without the end of
// its process.
func TestOnceAfterAFailure(t *testing.T) {
	t.Parallel()
	ways := map[string]func(ctx context.Context) error{
		"error": func(context.Context) error { return errJob },
		"panic": func(context.Context) error { panic(errJob) },
		"exit":  func(context.Context) error { runtime.Goexit(); return nil },
		"release": func(ctx context.Context) error {
			held, _ := lock.FromContext(ctx)
			return held.Release(ctx)
		},
	}
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := patient(t, rdb, prefix)
		for _, rerun := range bothWays {
			for way, job := range ways {
				name, tick := rerun.String()+"-"+way, aTick()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() {
						if p := recover(); (p != nil) != (way == "panic") {
							t.Errorf("%s: recovered %v, want a panic: %t", name, p, way == "panic")
						}
					}()
					ran, err := l.Once(t.Context(), name, tick, rerun, job)
					if !ran || !errors.Is(err, map[string]error{"error": errJob, "release": lock.ErrReleased}[way]) {
						t.Errorf("%s: Once: got ran %v, %v, want true and the error of the %s", name, ran, err, way)
					}
				}()
				<-ended
				assertRan(t, l, name, tick, rerun, rerun == lock.Again)
				assertRan(t, l, name, tick, rerun, false)
			}
		}
		if stats := l.Stats(); stats.Holding != 0 || stats.Waiting != 0 || stats.Undoing != 0 {
			t.Errorf("got stats %+v, want 0 holding, waiting and undoing", stats)
		}
	})
}

// TestOnceWaits asks for a tick that is running in this process, and for one that is
// running in another.
func TestOnceWaits(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		a, b := patient(t, rdb, prefix), patient(t, rdb, prefix)
		for _, rerun := range bothWays {
			for who, other := range map[string]*lock.Locker{"here": a, "there": b} {
				job, tick := rerun.String()+who, aTick()
				asked := make(chan struct{})
				done := make(chan bool)
				ran, err := a.Once(t.Context(), job, tick, rerun, func(context.Context) error {
					if rerun == lock.Never {
						assertRan(t, other, job, tick, rerun, false)
						return nil
					}
					brief, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
					defer cancel()
					if ran, err := other.Once(brief, job, tick, rerun, fine); ran || err != context.DeadlineExceeded {
						t.Errorf("%s: Once until its deadline: got ran %v, %v, want false and DeadlineExceeded",
							job, ran, err)
					}
					go func() {
						close(asked)
						assertRan(t, other, job, tick, rerun, false)
						done <- true
					}()
					<-asked
					redistest.Await(t, 20*time.Second, "another to wait", func() bool { return other.Stats().Waiting == 1 })
					return nil
				})
				if !ran || err != nil {
					t.Fatalf("%s: the first Once: got ran %v, %v, want true and no error", job, ran, err)
				}
				if rerun == lock.Again {
					<-done
				}
			}
		}
	})
}

var errJob = errors.New("the job failed")

// TestOnceOutlivesItsLease lets runs go on after their leases, with and without another
// process that takes over.
func TestOnceOutlivesItsLease(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		brief := locker(t, rdb, prefix, &lock.Options{Lease: 9 * time.Second, Budget: 3 * time.Second, NoRenewal: true, FenceRetention: time.Hour})
		other := patient(t, rdb, prefix)
		var wg sync.WaitGroup
		for _, end := range []error{nil, errJob} {
			for _, rerun := range bothWays {
				wg.Go(func() { runAlone(t, brief, other, rerun, end) })
			}
			wg.Go(func() { runTakenOver(t, brief, other, end) })
		}
		wg.Wait()
	})
}

// lapse waits for the end of a lease.
func lapse(ctx context.Context, t *testing.T) {
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), lock.ErrExpired) {
		t.Errorf("a run beyond its lease: its Context ended by %v, want ErrExpired", context.Cause(ctx))
	}
}

// runAlone: no other process takes the tick over, so the run may still complete.
func runAlone(t *testing.T, brief, other *lock.Locker, rerun lock.Rerun, end error) {
	job, tick := fmt.Sprint("alone-", rerun, end == nil), aTick()
	ran, err := brief.Once(t.Context(), job, tick, rerun, func(ctx context.Context) error {
		lapse(ctx, t)
		return end
	})
	if !ran || !errors.Is(err, end) || (err != nil) != errors.Is(err, lock.ErrExpired) {
		t.Errorf("%s: Once beyond its lease: got ran %v, %v, want true and %v, with ErrExpired if an error",
			job, ran, err, end)
	}
	assertRan(t, other, job, tick, rerun, end != nil && rerun == lock.Again)
}

// runTakenOver: another process begins the tick after the lease of the first. The first
// run does not complete, and the outcome of the other counts.
func runTakenOver(t *testing.T, brief, other *lock.Locker, end error) {
	job, tick := fmt.Sprint("taken-", end == nil), aTick()
	taken, firstOver := make(chan int64), make(chan struct{})
	var wg sync.WaitGroup
	ran, err := brief.Once(t.Context(), job, tick, lock.Again, func(ctx context.Context) error {
		wg.Go(func() {
			_, err := other.Once(t.Context(), job, tick, lock.Again, func(ctx context.Context) error {
				held, _ := lock.FromContext(ctx)
				taken <- held.Fence()
				<-firstOver
				return end
			})
			if !errors.Is(err, end) {
				t.Errorf("%s: Once by the other: got %v, want %v", job, err, end)
			}
		})
		held, _ := lock.FromContext(ctx)
		if fence := <-taken; fence <= held.Fence() {
			t.Errorf("%s: the other run: got the fence %d, want more than %d", job, fence, held.Fence())
		}
		lapse(ctx, t)
		return nil
	})
	if !ran || !errors.Is(err, lock.ErrTakenByOther) {
		t.Errorf("%s: Once of a tick that was taken over: got ran %v, %v, want true and ErrTakenByOther",
			job, ran, err)
	}
	close(firstOver)
	wg.Wait()
	assertRan(t, other, job, tick, lock.Again, end != nil)
}

func TestOnceErrors(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		l := patient(t, rdb, prefix)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, c := range []struct {
			ctx   context.Context
			job   string
			tick  time.Time
			rerun lock.Rerun
			want  error
		}{
			{t.Context(), "", aTick(), lock.Again, lock.ErrKey},
			{t.Context(), "job", time.Time{}, lock.Again, lock.ErrTick},
			{t.Context(), "job", aTick(), 0, lock.ErrTick},
			{t.Context(), "job", aTick(), lock.Again + 1, lock.ErrTick},
			{t.Context(), "job", time.Now().Add(-time.Hour - time.Second), lock.Again, lock.ErrLate},
			{t.Context(), "job", time.Now().Add(-time.Hour - time.Second), lock.Never, lock.ErrLate},
			{t.Context(), "job", time.UnixMilli(-1), lock.Never, lock.ErrLate},
			{ended, "job", aTick(), lock.Again, context.Canceled},
			{ended, "job", aTick(), lock.Never, context.Canceled},
		} {
			ran, err := l.Once(c.ctx, c.job, c.tick, c.rerun, func(context.Context) error {
				t.Errorf("%+v: got a run, want none", c)
				return nil
			})
			if ran || !errors.Is(err, c.want) {
				t.Errorf("%+v: got ran %v, %v, want false and %v", c, ran, err, c.want)
			}
		}
		if n := len(redistest.KeysOf(t, admin, prefix)); n != 0 {
			t.Errorf("got %d keys left behind, want 0", n)
		}

		tick := aTick()
		ran, err := l.Once(t.Context(), "job", tick, lock.Again, func(ctx context.Context) error {
			if again, err := l.Once(ctx, "job", tick, lock.Again, nil); again || !errors.Is(err, lock.ErrHeld) {
				t.Errorf("Once of its own tick in a run: got %v, %v, want false and ErrHeld", again, err)
			}
			other, err := l.Once(ctx, "other", tick, lock.Again, func(context.Context) error { return nil })
			if !other || err != nil {
				t.Errorf("Once of another job in a run: got %v, %v, want true and no error", other, err)
			}
			return err
		})
		if !ran || err != nil {
			t.Errorf("the outer Once: got ran %v, %v, want true and no error", ran, err)
		}
	})
}

// TestOnceRemembersTicks asks again for ticks, one of them in the future, until they are
// too long ago. The server's clock is set back by a day in the middle of the runs.
func TestOnceRemembersTicks(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, back := range []time.Duration{0, day, defaultFenceRetention - time.Minute} {
		t.Run(fmt.Sprint(back), func(t *testing.T) {
			t.Parallel()
			m := miniredis.RunT(t)
			m.ClockTTL(true)
			now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
			m.SetTime(now)
			rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
			t.Cleanup(func() { rdb.Close() })
			l := locker(t, rdb, "neap:once", &lock.Options{Budget: 10 * time.Second})
			other := locker(t, rdb, "neap:once", &lock.Options{Budget: 10 * time.Second})
			ticks := []time.Time{now.Add(-time.Second), now, now.Add(5 * day)}
			var runs func(n int)
			runs = func(n int) { // each inside the one before
				if n == 2*len(ticks) {
					m.SetTime(now.Add(-back))
					return
				}
				rerun := bothWays[n%2]
				ran, err := l.Once(t.Context(), rerun.String(), ticks[n/2], rerun, func(ctx context.Context) error {
					runs(n + 1)
					held, _ := lock.FromContext(ctx)
					return held.Extend(ctx, time.Minute)
				})
				if !ran || err != nil {
					t.Fatalf("run %d: got ran %v, %v, want true and no error", n, ran, err)
				}
			}
			runs(0)
			for at := now.Add(-back); at.Before(ticks[2].Add(3 * day)); at = at.Add(4 * time.Hour) {
				for _, tick := range ticks {
					for _, rerun := range bothWays {
						m.SetTime(at)
						ran, err := other.Once(t.Context(), rerun.String(), tick, rerun, fine)
						if late := !at.Before(tick.Add(defaultFenceRetention)); ran || late != errors.Is(err, lock.ErrLate) || !late && err != nil {
							t.Fatalf("%v, %v after the tick: got ran %v, %v, want false and ErrLate: %t",
								rerun, at.Sub(tick), ran, err, late)
						}
					}
				}
			}
			m.SetTime(ticks[2].Add(9 * day))
			if keys := m.Keys(); len(keys) > 0 {
				t.Errorf("got the keys %q left behind, want none", keys)
			}
		})
	}
}
