package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// ended waits for the end of a lock's context and returns when it came.
func ended(t *testing.T, held *lock.Lock) time.Time {
	t.Helper()
	select {
	case <-held.Context().Done():
	case <-time.After(1000 * time.Hour):
		t.Fatal("the Context of the lock: got no end within 1000h, want one")
	}
	return time.Now()
}

// outages are ways in which Redis does not answer.
var outages = map[string]func(n int, c call) (any, error){
	"refused": func(int, call) (any, error) { return refuse() },
	"silent":  func(_ int, c call) (any, error) { return hang(c) },
	"slow": func(_ int, c call) (any, error) {
		time.Sleep(time.Minute)
		return int64(math.MaxInt32), nil
	},
}

// TestEndsBeforeTheLease checks the arithmetic of the design to the nanosecond: the lock
// ends when the lease, less 1 % and 5 ms, has passed since the start of the last call
// that Redis answered.
func TestEndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{50 * time.Millisecond, 60 * time.Millisecond, time.Second, defaultLease} {
		for how, outage := range outages {
			for renewed := range 4 {
				for _, latency := range []time.Duration{0, min(ttl/20, 50*time.Millisecond)} {
					t.Run(fmt.Sprint(ttl, how, renewed, latency), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { endsBeforeTheLease(t, ttl, renewed, latency, outage) })
					})
				}
			}
		}
	}
}

func endsBeforeTheLease(t *testing.T, ttl time.Duration, renewed int, latency time.Duration, outage func(int, call) (any, error)) {
	f, l := fakeLocker(t, &lock.Options{Lease: ttl})
	f.answer(func(n int, c call) (any, error) {
		if c.script == "extend" && n > renewed {
			return outage(n, c)
		}
		time.Sleep(latency)
		return yes(n, c)
	})
	held, err := l.Try(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Stats(); got != (lock.Stats{Granted: 1, Holding: 1}) {
		t.Errorf("got stats %+v, want 1 granted and 1 holding", got)
	}
	ctx := held.Context()
	time.Sleep(time.Duration(renewed)*ttl/3 + latency + time.Millisecond)
	synctest.Wait()
	last := f.of("acquire")[0].at
	if renewals := f.of("extend"); renewed > 0 {
		last = renewals[renewed-1].at
	}
	want := last.Add(ttl - ttl/100 - 5*time.Millisecond)
	time.Sleep(time.Until(want) - time.Nanosecond)
	if held.Err() != nil || ctx.Err() != nil {
		t.Fatalf("before the end: got Err %v and the Context's %v, want none", held.Err(), ctx.Err())
	}
	if at := ended(t, held); !at.Equal(want) {
		t.Errorf("the lock ended %v late, want it at %v", at.Sub(want), want)
	}
	if !errors.Is(held.Err(), lock.ErrExpired) || !errors.Is(context.Cause(ctx), lock.ErrExpired) || errors.Is(held.Err(), lock.ErrMaxHold) {
		t.Errorf("after the end: got Err %v and the cause %v, want ErrExpired without ErrMaxHold",
			held.Err(), context.Cause(ctx))
	}
	if err := held.Extend(t.Context(), time.Second); !errors.Is(err, lock.ErrExpired) {
		t.Errorf("Extend after the end: got %v, want ErrExpired", err)
	}
	f.answer(outage)
	if err := held.Release(t.Context()); !errors.Is(err, lock.ErrExpired) {
		t.Errorf("Release after the end: got %v, want ErrExpired", err)
	}
	if got := l.Stats(); got != (lock.Stats{Granted: 1, Lost: 1, Undoing: 1}) {
		t.Errorf("got stats %+v, want 1 granted, 1 lost and 1 undoing", got)
	}
	f.answer(yes)
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	if got := l.Stats(); got != (lock.Stats{Granted: 1, Lost: 1, Undone: 1}) {
		t.Errorf("got stats %+v, want 1 granted, 1 lost and 1 undone", got)
	}
	asked := len(f.calls)
	time.Sleep(2 * ttl)
	if now := len(f.calls); now != asked {
		t.Errorf("got %d questions about a lock that is over, want 0", now-asked)
	}
}

// TestRenewalFindsOut: Redis says that the lock is lost. The holder is told after a third
// of the lease, and by Release and Extend.
func TestRenewalFindsOut(t *testing.T) {
	t.Parallel()
	const ttl = 30 * time.Second
	for reply, want := range map[int64]error{0: lock.ErrExpired, -1: lock.ErrTakenByOther, -2: lock.ErrLost} {
		t.Run(want.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, l := fakeLocker(t, nil)
				f.answer(func(n int, c call) (any, error) {
					if c.script == "acquire" {
						return yes(n, c)
					}
					return reply, nil
				})
				held, err := l.Try(t.Context(), "key")
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if at := ended(t, held); at.Sub(began) != ttl/3 {
					t.Errorf("the holder was told after %v, want %v", at.Sub(began), ttl/3)
				}
				if !errors.Is(held.Err(), want) || !errors.Is(context.Cause(held.Context()), want) {
					t.Errorf("the holder was told: got Err %v and the cause %v, want %v",
						held.Err(), context.Cause(held.Context()), want)
				}
				if err := held.Release(t.Context()); !errors.Is(err, want) {
					t.Errorf("Release: got %v, want %v", err, want)
				}
				if err := held.Extend(t.Context(), ttl); !errors.Is(err, want) {
					t.Errorf("Extend: got %v, want %v", err, want)
				}
				if got := l.Stats(); got != (lock.Stats{Granted: 1, Lost: 1}) {
					t.Errorf("got stats %+v, want 1 granted and 1 lost", got)
				}

				held, err = l.Try(t.Context(), "key")
				if err != nil {
					t.Fatal(err)
				}
				if err := held.Extend(t.Context(), ttl); !errors.Is(err, want) || !errors.Is(held.Err(), want) {
					t.Errorf("Extend that finds out: got %v and Err %v, want %v", err, held.Err(), want)
				}
				held, err = l.Try(t.Context(), "key")
				if err != nil {
					t.Fatal(err)
				}
				if err := held.Release(t.Context()); !errors.Is(err, want) || !errors.Is(held.Err(), lock.ErrReleased) {
					t.Errorf("Release that finds out: got %v and Err %v, want %v and ErrReleased",
						err, held.Err(), want)
				}
				if got := l.Stats(); got != (lock.Stats{Granted: 3, Lost: 3}) {
					t.Errorf("got stats %+v, want 3 granted and 3 lost", got)
				}
			})
		})
	}
}

// TestRenewalGoesOn checks when Redis is asked: after each third of the lease or somewhat
// earlier, more often while it does not answer, and not after the release.
func TestRenewalGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, l := fakeLocker(t, &lock.Options{Lease: 30 * time.Second})
		began := time.Now()
		lost := func(since time.Duration) bool { return since > 29*time.Second && since < 31500*time.Millisecond }
		var latest time.Duration
		f.answer(func(n int, c call) (any, error) {
			since := c.at.Sub(began)
			if lost(since) {
				latest = since
			}
			if lost(since) || latest > 0 && since-latest < script.DefaultBudget { // nor are the repetitions of a lost call answered
				return refuse()
			}
			return yes(n, c)
		})
		held, err := l.Try(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("Release: got %v, want no error", err)
		}
		time.Sleep(time.Hour)
		var at []time.Duration
		last, pause := time.Duration(0), 10*time.Second
		for _, c := range f.of("extend") {
			since := c.at.Sub(began)
			if since-last < script.DefaultBudget { // a call without an answer is repeated within the budget
				continue
			}
			if early := last + pause - since; early < 0 || early > pause/8+20*time.Millisecond {
				t.Errorf("got a renewal after %v, want one after %v or up to an eighth of %v and 20 ms earlier", since, last+pause, pause)
			}
			at, last, pause = append(at, since), since, 10*time.Second
			if lost(since) {
				pause = time.Second
			}
		}
		if len(at) < 6 {
			t.Errorf("got renewals at %v, want them for a minute", at)
		}
		if held.Err() == nil || len(f.of("release")) != 1 {
			t.Errorf("after Release: got Err %v and %d releases, want an error and 1",
				held.Err(), len(f.of("release")))
		}
	})
}

// TestLateRepliesChangeNothing delays the reply to a renewal until after the release, and
// until after the end of the lease.
func TestLateRepliesChangeNothing(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]any{"extended": int64(30_000), "taken": int64(-1), "gone": int64(-2), "an error": errors.New("ERR no")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const ttl, budget = 3 * time.Second, time.Second
				f, l := fakeLocker(t, &lock.Options{Lease: ttl, Budget: budget})
				f.answer(func(n int, c call) (any, error) {
					if c.script != "extend" {
						return yes(n, c)
					}
					time.Sleep(budget / 2)
					if err, ok := reply.(error); ok {
						return nil, err
					}
					return reply, nil
				})
				held, err := l.Try(t.Context(), "key")
				if err != nil {
					t.Fatal(err)
				}
				ctx := held.Context()
				time.Sleep(ttl/3 + budget/4)
				if err := held.Release(t.Context()); err != nil {
					t.Errorf("Release: got %v, want no error", err)
				}
				check := func() {
					t.Helper()
					if !errors.Is(held.Err(), lock.ErrReleased) || !errors.Is(context.Cause(ctx), lock.ErrReleased) {
						t.Errorf("after Release: got Err %v and the cause %v, want ErrReleased",
							held.Err(), context.Cause(ctx))
					}
					if got := l.Stats(); got != (lock.Stats{Granted: 1}) {
						t.Errorf("got stats %+v, want 1 granted", got)
					}
				}
				check()
				time.Sleep(10 * ttl)
				check()
				if n := len(f.of("extend")); n != 1 {
					t.Errorf("got %d renewals, want 1", n)
				}
			})
		})
	}
	t.Run("after the lease", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f, l := fakeLocker(t, &lock.Options{Lease: time.Second, NoRenewal: true})
			held, err := l.Try(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			f.answer(func(n int, c call) (any, error) {
				time.Sleep(200 * time.Millisecond)
				return int64(time.Hour / time.Millisecond), nil
			})
			time.Sleep(900 * time.Millisecond)
			if err := held.Extend(t.Context(), time.Hour); !errors.Is(err, lock.ErrExpired) || !errors.Is(held.Err(), lock.ErrExpired) {
				t.Errorf("Extend that is answered after the lease: got %v and Err %v, want ErrExpired",
					err, held.Err())
			}
		})
	})
}

// TestAnswersAfterTheLease is about a process that slept while it asked.
func TestAnswersAfterTheLease(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	const sleep = 6 * time.Second
	l, err := lock.New(storetest.Direct(t, rdb, redistest.Prefix(t)), "test", &lock.Options{Lease: sleep, Budget: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	rdb.AddHook(&redistest.SlowReply{For: sleep})
	if held, err := l.Try(t.Context(), "key"); held != nil || !errors.Is(err, lock.ErrExpired) {
		t.Errorf("Try that is answered after the lease: got %v, %v, want no lock and ErrExpired", held, err)
	}
	if got := l.Stats(); got != (lock.Stats{Failed: 1}) {
		t.Errorf("got stats %+v, want 1 failed", got)
	}
	if state, err := l.Inspect(t.Context(), "key"); err != nil || state.Holds != 0 || state.Fence == 0 {
		t.Errorf("Inspect: got %+v, %v, want no hold, and the fence of one that was granted", state, err)
	}
}

// TestMaxHold has a holder that hangs. Its lock ends with MaxHold, in Redis too.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	const ms, s = time.Millisecond, time.Second
	for _, c := range []struct{ ttl, most time.Duration }{
		{30 * s, 50 * ms}, {30 * s, s}, {30 * s, 9999 * ms}, {30 * s, 10 * s}, {30 * s, 10100 * ms}, {30 * s, 25 * s}, {30 * s, 30 * s},
		{30 * s, 31 * s}, {30 * s, 40*s + 999*time.Microsecond}, {30 * s, time.Hour}, {s, 10 * time.Minute}, {50 * ms, 101 * ms},
		{24 * time.Hour, s},
	} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(c, plain), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f, l := fakeLocker(t, &lock.Options{Lease: c.ttl, MaxHold: c.most, NoRenewal: plain})
					held, err := l.Try(t.Context(), "key")
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					if plain {
						if err := held.Extend(t.Context(), 24*time.Hour); err != nil {
							t.Errorf("Extend: got %v, want no error", err)
						}
					}
					_ = held.Context()
					took := ended(t, held).Sub(began)
					least := c.most - min(c.most, c.ttl)/100 - 7*ms
					if plain {
						least = c.most - c.most/100 - 7*ms
					}
					if took < least || took > c.most-5*ms {
						t.Errorf("the lock ended after %v, want after %v to %v", took, least, c.most-5*ms)
					}
					if !errors.Is(held.Err(), lock.ErrMaxHold) || !errors.Is(context.Cause(held.Context()), lock.ErrMaxHold) {
						t.Errorf("after MaxHold: got Err %v and the cause %v, want ErrMaxHold",
							held.Err(), context.Cause(held.Context()))
					}
					for _, e := range append(f.of("acquire"), f.of("extend")...) {
						if over := e.at.Add(e.ttl()).Sub(began.Add(c.most)); over > ms {
							t.Errorf("a lease reaches %v beyond MaxHold, want %v at most", over, ms)
						}
					}
					if got := f.of("acquire"); len(got) == 1 && !plain && c.most <= c.ttl {
						if ms := got[0].args[2]; ms != fmt.Sprint(c.most.Milliseconds()) {
							t.Errorf("got a first lease of %v ms, want %d", ms, c.most.Milliseconds())
						}
					}
					f.answer(func(int, call) (any, error) { return int64(0), nil })
					if err := held.Extend(t.Context(), time.Minute); !errors.Is(err, lock.ErrMaxHold) {
						t.Errorf("Extend after MaxHold: got %v, want ErrMaxHold", err)
					}
					if err := held.Release(t.Context()); !errors.Is(err, lock.ErrMaxHold) {
						t.Errorf("Release after MaxHold: got %v, want ErrMaxHold", err)
					}
				})
			})
		}
	}
}

// TestMaxHoldReportsLosses: a lock is renewed even if MaxHold ends it soon, so its holder
// learns of a loss.
func TestMaxHoldReportsLosses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, l := fakeLocker(t, &lock.Options{Lease: 30 * time.Second, MaxHold: 30 * time.Second})
		held, err := l.Try(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		f.answer(func(int, call) (any, error) { return int64(-2), nil })
		began := time.Now()
		if took := ended(t, held).Sub(began); took != 10*time.Second || !errors.Is(held.Err(), lock.ErrLost) {
			t.Errorf("the lock ended after %v: got Err %v, want 10s and ErrLost", took, held.Err())
		}
	})
}

// TestNoRenewal: neap sends no renewal, and the lock ends with its lease unless it is
// extended.
func TestNoRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, l := fakeLocker(t, &lock.Options{Lease: 10 * time.Second, NoRenewal: true})
		held, err := l.Try(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.Sleep(5 * time.Second)
		if n := len(f.of("extend")); n != 0 {
			t.Errorf("got %d renewals, want 0", n)
		}
		if err := held.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("Extend by a minute: got %v, want no error", err)
		}
		f.answer(func(int, call) (any, error) { return int64(50_000), nil }) // the script does not shorten it either
		if err := held.Extend(t.Context(), time.Second); err != nil {
			t.Errorf("Extend by a second: got %v, want no error", err)
		}
		if took := ended(t, held).Sub(began); took != 65*time.Second-605*time.Millisecond {
			t.Errorf("the lock ended after %v, want %v", took, 65*time.Second-605*time.Millisecond)
		}
	})
}

// TestExtendWithoutAnAnswer: Err stays right.
func TestExtendWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, l := fakeLocker(t, &lock.Options{Lease: 10 * time.Second, NoRenewal: true})
		held, err := l.Try(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		f.answer(func(int, call) (any, error) { return refuse() })
		if err := held.Extend(t.Context(), time.Minute); !errors.Is(err, script.ErrMaybeExecuted) || held.Err() != nil {
			t.Errorf("Extend without an answer: got %v and Err %v, want ErrMaybeExecuted and nil", err, held.Err())
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		asked := len(f.of("extend"))
		if err := held.Extend(canceled, time.Minute); !errors.Is(err, context.Canceled) || held.Err() != nil || len(f.of("extend")) != asked {
			t.Errorf("Extend with a canceled context: got %v, Err %v and %d calls, want context.Canceled, nil and 0",
				err, held.Err(), len(f.of("extend"))-asked)
		}
		if took := ended(t, held).Sub(began); took != 10*time.Second-105*time.Millisecond {
			t.Errorf("the lock ended after %v, want %v", took, 10*time.Second-105*time.Millisecond)
		}
	})
}

// TestReleaseWithALostReply: Release asks a second time. If the second reply leaves open
// what the first call did, Release reports neither a loss nor a success.
func TestReleaseWithALostReply(t *testing.T) {
	t.Parallel()
	for second, want := range map[int64]error{
		1: nil, -3: nil, 0: lock.ErrExpired, -1: script.ErrMaybeExecuted, -2: script.ErrMaybeExecuted,
	} {
		synctest.Test(t, func(t *testing.T) {
			f, l := fakeLocker(t, nil)
			held, err := l.Try(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			f.answer(func(n int, c call) (any, error) {
				if n == 1 {
					return refuse()
				}
				return second, nil
			})
			if err := held.Release(t.Context()); !errors.Is(err, want) {
				t.Errorf("Release, answered %d when asked again: got %v, want %v", second, err, want)
			}
			if got := l.Stats(); (got.Lost == 1) != (want == lock.ErrExpired) || got.Undoing != 0 {
				t.Errorf("answered %d: got stats %+v, want 0 undoing, and 1 lost only with ErrExpired", second, got)
			}
		})
	}
}

// TestConcurrentMethods calls the methods of a lock concurrently while it is renewed,
// lost or released.
func TestConcurrentMethods(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { atOnce(t, i) })
	}
	all.Wait()
}

func atOnce(t *testing.T, i int) {
	f, l := fakeLocker(t, &lock.Options{Lease: 3 * time.Second, Budget: time.Second})
	held, err := l.Try(t.Context(), "key")
	if err != nil {
		t.Error(err)
		return
	}
	f.answer(func(n int, c call) (any, error) {
		<-time.After(time.Duration(i%7) * time.Millisecond)
		if c.script == "extend" && n > i {
			return int64(-i % 3), nil
		}
		return yes(n, c)
	})
	var wg sync.WaitGroup
	outcomes := make([]error, 3)
	for j := range outcomes {
		wg.Go(func() {
			<-time.After(time.Duration(i%50) * 6 * time.Millisecond)
			outcomes[j] = held.Release(t.Context())
		})
		wg.Go(func() {
			for held.Err() == nil {
				_ = held.Extend(t.Context(), 50*time.Millisecond)
				<-time.After(time.Millisecond)
			}
		})
		wg.Go(func() {
			<-held.Context().Done()
			if cause := context.Cause(held.Context()); cause != held.Err() {
				t.Errorf("got the cause %v and Err %v, want them alike", cause, held.Err())
			}
		})
	}
	wg.Wait()
	if outcomes[0] != outcomes[1] || outcomes[1] != outcomes[2] {
		t.Errorf("got the errors %v of three releases, want them alike", outcomes)
	}
	if got := l.Stats(); got.Holding != 0 || got.Lost > 1 {
		t.Errorf("got stats %+v, want 0 holding and 1 lost at most", got)
	}
}
