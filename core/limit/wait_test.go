package limit

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func newTestLocal(t *testing.T, opts *Options, policies ...Policy) *Limiter {
	t.Helper()
	return must(NewLocal("test", policies, opts))(t)
}

// TestWaitAdmitsInOrder has callers arrive one after the other. Some give up, some ask
// for more than others, and another subject waits too.
func TestWaitAdmitsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, nil, TokenBucket{Rate: 1, Per: time.Second, Burst: 3})
		began := time.Now()
		var mu sync.Mutex
		var order []int
		var at []time.Duration
		var wg sync.WaitGroup
		for i := range 12 {
			cost, patience := int64(1), time.Hour
			if i%4 == 1 {
				cost = 3
			}
			if i%4 == 2 {
				patience = time.Second
			}
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				d, err := l.WaitN(ctx, "s", cost)
				switch {
				case i > 0 && patience == time.Second:
					if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Second {
						t.Errorf("caller %d, for 1s: got %+v, %v after %v, want DeadlineExceeded within 2s",
							i, d, err, time.Since(began))
					}
				case err != nil || !d.Allowed:
					t.Errorf("caller %d: got %+v, %v, want it allowed", i, d, err)
				default:
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
					at = append(at, time.Since(began).Round(time.Second))
				}
			})
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		if d, err := l.Wait(t.Context(), "other"); err != nil || !d.Allowed || time.Since(began) > time.Second {
			t.Errorf("a wait by another subject: got %+v, %v, want it allowed within 1s", d, err)
		}
		if n := l.Stats().Waiting; n != 11 {
			t.Errorf("while all wait: got %d waiting, want 11", n)
		}
		wg.Wait()
		if want := []int{0, 1, 3, 4, 5, 7, 8, 9, 11}; !slices.Equal(order, want) {
			t.Errorf("the order of admission: got %v, want %v", order, want)
		}
		s := time.Second
		if want := []time.Duration{0, s, 2 * s, 3 * s, 6 * s, 7 * s, 8 * s, 11 * s, 12 * s}; !slices.Equal(at, want) {
			t.Errorf("the times of admission: got %v, want %v", at, want)
		}
		if n, queues := l.Stats().Waiting, len(l.queues.bySubject); n != 0 || queues != 0 {
			t.Errorf("after all were admitted: got %d still waiting, in %d queues, want none", n, queues)
		}
	})
}

func TestWaitRefusesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, &Options{MaxWaiting: 2}, FixedWindow{Limit: 1, Window: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		must(l.Take(ctx, "s"))(t)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if d, err := l.Wait(ctx, "s"); !errors.Is(err, context.Canceled) {
					t.Errorf("a wait that is canceled: got %+v, %v, want context.Canceled", d, err)
				}
			})
		}
		synctest.Wait()
		if _, err := l.Wait(ctx, "another"); !errors.Is(err, ErrQueue) {
			t.Errorf("a third wait with MaxWaiting 2: got %v, want ErrQueue", err)
		}
		other := must(l.With(FixedWindow{Limit: 2, Window: time.Hour}))(t)
		if s := other.Stats(); s.Waiting != 2 {
			t.Errorf("a limiter of With: got %d waiting, want the 2 of both", s.Waiting)
		}
		if _, err := other.Wait(ctx, "s"); !errors.Is(err, ErrQueue) {
			t.Errorf("a third wait, in a limiter of With: got %v, want ErrQueue", err)
		}
		if _, err := l.Wait(ctx, ""); !errors.Is(err, ErrSubject) {
			t.Errorf("a wait without a subject: got %v, want ErrSubject", err)
		}
		if _, err := l.WaitN(ctx, "another", 2); !errors.Is(err, ErrCost) {
			t.Errorf("a wait for more than the limit: got %v, want ErrCost", err)
		}
		cancel()
		wg.Wait()
		if _, err := l.Wait(ctx, "another"); !errors.Is(err, context.Canceled) {
			t.Errorf("a wait with a canceled context: got %v, want context.Canceled", err)
		}
		if s := l.Stats(); s.Waiting != 0 {
			t.Errorf("got stats %+v, want 0 waiting", s)
		}
	})
}

// TestWaitKeepsTheLimit has the callers of four processes wait for one bucket in Redis.
func TestWaitKeepsTheLimit(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const callers, burst, rate = 100, 10, 100
		began := time.Now()
		var wg sync.WaitGroup
		for range 4 {
			l := must(New(storetest.At(t, rdb, prefix), "wait", []Policy{TokenBucket{Rate: rate, Per: time.Second, Burst: burst}},
				closed(5*time.Second)))(t)
			for range callers / 4 {
				wg.Go(func() {
					if d, err := l.Wait(t.Context(), "s"); err != nil || !d.Allowed {
						t.Errorf("a wait: got %+v, %v, want it allowed", d, err)
					}
				})
			}
		}
		wg.Wait()
		if took, least := time.Since(began), time.Second*(callers-burst)/rate-time.Millisecond; took < least {
			t.Errorf("%d callers: got all admitted within %v, want at least %v", callers, took, least)
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// spent answers a thousand times that a window of 5 is used up and ends now.
type spent struct{ calls atomic.Int64 }

func (s *spent) Process(_ context.Context, cmd redis.Cmder) error {
	if s.calls.Add(1) > 1000 {
		err := redisError("ERR asked too often")
		cmd.SetErr(err)
		return err
	}
	cmd.(interface{ SetVal(val any) }).SetVal(int64(-1 - 5))
	return nil
}

// TestWaitDoesNotSpin if a clock of milliseconds says that no time is left.
func TestWaitDoesNotSpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb spent
		l := must(New(&rdb, "spent", []Policy{FixedWindow{Limit: 5, Window: time.Hour}}, &Options{Fail: store.FailClosed}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if d, err := l.Wait(ctx, "s"); !errors.Is(err, context.DeadlineExceeded) || rdb.calls.Load() > 101 {
			t.Errorf("a wait of 100ms: got %+v, %v after %d calls, want DeadlineExceeded after at most 101",
				d, err, rdb.calls.Load())
		}
	})
}

func TestWaitTellsOfAnOutage(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: refused(t)})
	defer rdb.Close()
	for _, mode := range modes {
		l := must(New(rdb, "wait", []Policy{FixedWindow{Limit: 5, Window: time.Hour}}, &Options{Fail: mode}))(t)
		d, err := l.Wait(t.Context(), "s")
		if (err != nil) != (mode == store.FailClosed) || d.Degraded == (mode == store.FailClosed) {
			t.Errorf("%v: a wait without Redis: got %+v, %v, want an error under store.FailClosed, else a degraded one",
				mode, d, err)
		}
	}
}

// waited is how a call of WaitFor ended.
type waited struct {
	Decision

	after time.Duration
}

// waitFor has callers come one after the other, a millisecond apart.
func waitFor(t *testing.T, most time.Duration, costs []int64, in func(i int) *Limiter) []waited {
	t.Helper()
	got := make([]waited, len(costs))
	var all sync.WaitGroup
	for i, cost := range costs {
		all.Go(func() {
			began := time.Now()
			d, err := in(i).WaitFor(t.Context(), "s", cost, most)
			if err != nil {
				t.Errorf("caller %d: got %v, want a decision", i, err)
			}
			got[i] = waited{d, time.Since(began)}
		})
		synctest.Wait()
		time.Sleep(time.Millisecond)
	}
	all.Wait()
	return got
}

// TestWaitForTellsAtOnce has more callers than can be served in time.
func TestWaitForTellsAtOnce(t *testing.T) {
	t.Parallel()
	bucket := TokenBucket{Rate: 2, Per: time.Second, Burst: 1}
	for cost, policies := range map[int64][]Policy{
		1: {bucket},
		7: {PerRequest(bucket), FixedWindow{Limit: 1000, Window: time.Hour}},
	} {
		tellsAtOnce(t, cost, policies)
	}
}

// tellsAtOnce tests policies, and one of them grants two requests a second.
func tellsAtOnce(t *testing.T, cost int64, policies []Policy) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, nil, policies...)
		got := waitFor(t, 2*time.Second, slices.Repeat([]int64{cost}, 8), func(int) *Limiter { return l })
		for i, w := range got {
			came := time.Duration(i) * time.Millisecond
			served := time.Duration(i)*time.Second/2 - came
			switch allowed := i < 5; {
			case w.Allowed != allowed:
				t.Errorf("caller %d: got %+v, want allowed: %t", i, w, allowed)
			case allowed && w.after != served:
				t.Errorf("caller %d: got a permit after %v, want %v", i, w.after, served)
			case !allowed && (w.after != 0 || w.RetryAfter != 2500*time.Millisecond-came || w.Policy == ""):
				t.Errorf("caller %d: got %+v, want a denial at once, for %v", i, w, 2500*time.Millisecond-came)
			}
		}
		if s := l.Stats(); s.Allowed != 5 || s.Denied != 3 || s.Waiting != 0 {
			t.Errorf("got stats %+v, want 5 allowed, 3 denied, none waiting", s)
		}
		if d, err := l.WaitFor(t.Context(), "s", 1, 0); err != nil || d.Allowed {
			t.Errorf("a wait for no time: got %+v, %v, want a denial", d, err)
		}
		time.Sleep(time.Second)
		if d, err := l.WaitFor(t.Context(), "s", 1, 0); err != nil || !d.Allowed {
			t.Errorf("a wait for no time of a permit that is there: got %+v, %v, want it allowed", d, err)
		}
	})
}

// TestWaitForForesees: the first caller that is denied could not have been served within
// RetryAfter, and every caller before it is served in time.
func TestWaitForForesees(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			rng, foreseen := redistest.Rand(t), 0
			for range 100 {
				p := randomPolicy(rng, k)
				limit := must(p.compile())(t).id().limit
				if rng.IntN(3) == 0 {
					p = PerRequest(p)
				}
				costs := make([]int64, 2+rng.IntN(12))
				for i := range costs {
					costs[i] = max(1, randomCost(rng, limit))
				}
				run := func(most time.Duration) (got []waited) {
					synctest.Test(t, func(t *testing.T) {
						l := newTestLocal(t, nil, p)
						got = waitFor(t, most, costs, func(int) *Limiter { return l })
					})
					return got
				}
				want := run(forever / 4)
				most := want[rng.IntN(len(want))].after + time.Duration(rng.IntN(3)-1)*time.Second
				for i, w := range run(most) {
					if w.Allowed && w.after > max(most, 0)+DefaultBudget {
						t.Fatalf("%+v, %v, caller %d: got a permit after %v, want one within %v", p, costs, i, w.after, most)
					}
					if w.Allowed {
						continue
					}
					if w.after == 0 {
						foreseen++
						if max(w.RetryAfter, leastRest) <= most || w.RetryAfter > want[i].after+2*time.Millisecond {
							t.Fatalf("%+v, %v, caller %d: got a denial for %v, want more than the %v that it would wait, and at most %v",
								p, costs, i, w.RetryAfter, most, want[i].after)
						}
					}
					break
				}
			}
			if foreseen < 5 && k != kindFast { // whose waits are shorter than what is between two callers
				t.Errorf("callers that were denied at once: got %d, want at least 5", foreseen)
			}
		})
	}
}

// TestWaitForBesideAnotherProcess, which takes what the first caller in the queue waits
// for.
func TestWaitForBesideAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := TokenBucket{Rate: 1, Per: time.Second, Burst: 4}
		rdb, calls := countedClient(t)
		l := must(New(rdb, "wait", []Policy{policy}, closed(DefaultBudget)))(t)
		other := must(New(rdb, "wait", []Policy{policy}, closed(DefaultBudget)))(t)
		must(other.TakeN(t.Context(), "s", 4))(t)
		calls.Store(0)
		time.AfterFunc(2*time.Second, func() { _, _ = other.Take(context.Background(), "s") })
		got := waitFor(t, 3500*time.Millisecond, []int64{3, 1}, func(int) *Limiter { return l })
		if w := got[0]; w.Allowed || w.after.Round(10*time.Millisecond) != 3*time.Second {
			t.Errorf("the first: got %+v after %v, want a denial after 3 s", w.Decision, w.after)
		}
		if w := got[1]; w.Allowed || w.after != 0 || w.RetryAfter != 3999*time.Millisecond {
			t.Errorf("the one behind it: got %+v after %v, want a denial at once, for 3.999 s", w.Decision, w.after)
		}
		if n := calls.Load(); n != 3 {
			t.Errorf("got %d calls of Redis, want 3: the other's and two of the first", n)
		}
	})
}

// TestWaitForWithoutAPlace: callers for other subjects are still served.
func TestWaitForWithoutAPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, &Options{MaxWaiting: 1}, FixedWindow{Limit: 1, Window: time.Second})
		must(l.Take(t.Context(), "s"))(t)
		var one sync.WaitGroup
		one.Go(func() {
			if d, err := l.WaitFor(t.Context(), "s", 1, time.Minute); err != nil || !d.Allowed {
				t.Errorf("the one that waits: got %+v, %v, want it allowed", d, err)
			}
		})
		synctest.Wait()
		if _, err := l.WaitFor(t.Context(), "s", 1, time.Minute); !errors.Is(err, ErrQueue) {
			t.Errorf("a second one: got %v, want ErrQueue", err)
		}
		for _, allowed := range []bool{true, false} {
			if d, err := l.WaitFor(t.Context(), "other", 1, time.Minute); err != nil || d.Allowed != allowed {
				t.Errorf("another subject: got %+v, %v, want allowed: %t", d, err, allowed)
			}
		}
		one.Wait()
	})
}

// TestWaitersOfOneSubjectDoNotHoldUpAnother, nor a refund of it: each has a lock of its own.
func TestWaitersOfOneSubjectDoNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	l := newTestLocal(t, nil, FixedWindow{Limit: 1, Window: time.Hour})
	busy, _ := l.join("busy", 1, nil)
	busy.of.mu.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d, err := l.WaitFor(t.Context(), "free", 1, time.Minute)
		if err != nil || !d.Allowed {
			t.Errorf("a free subject: got %+v, %v, want it allowed", d, err)
		}
		if err := d.Refund(t.Context()); err != nil {
			t.Errorf("its refund: got %v, want none", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("while another subject's queue is locked: got a free subject still waiting after a minute, want it served")
	}
	busy.of.mu.Unlock()
	<-done
	l.queues.leave(busy)
}

// TestWaitForAfterOneHasLeft: the callers behind it move up.
func TestWaitForAfterOneHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, nil, TokenBucket{Rate: 1, Per: time.Second, Burst: 3})
		must(l.TakeN(t.Context(), "s", 3))(t)
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := l.WaitFor(ctx, "s", 3, time.Minute); !errors.Is(err, context.Canceled) {
				t.Errorf("the one that leaves: got %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		if d, err := l.WaitFor(t.Context(), "s", 1, 2*time.Second); err != nil || d.Allowed || d.RetryAfter != 4*time.Second {
			t.Errorf("behind 3 permits: got %+v, %v, want a denial for 4 s", d, err)
		}
		leave()
		all.Wait()
		if d, err := l.WaitFor(t.Context(), "s", 1, 2*time.Second); err != nil || !d.Allowed {
			t.Errorf("after they have left: got %+v, %v, want it allowed", d, err)
		}
	})
}

// TestWaitForTogether: callers that come before the first answer are told when it is
// there.
func TestWaitForTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &counting{UniversalClient: redistest.BubbleClient(t, bubble(t)), before: func() { time.Sleep(5 * time.Millisecond) }}
		l := must(New(client, "wait", []Policy{TokenBucket{Rate: 2, Per: time.Second, Burst: 1}}, closed(time.Minute)))(t)
		must(0, l.Warm(t.Context()))(t)
		var served, denied atomic.Int64
		together(600, func(int) {
			began := time.Now()
			switch d, err := l.WaitFor(t.Context(), "s", 1, 2*time.Second); {
			case err != nil:
				t.Error(err)
			case d.Allowed:
				served.Add(1)
			default:
				denied.Add(1)
				if took := time.Since(began); took > 10*time.Millisecond || d.RetryAfter.Round(10*time.Millisecond) != 2500*time.Millisecond {
					t.Errorf("a denial: got %+v after %v, want one for 2.5 s with the first answer", d, took)
				}
			}
		})
		if served.Load() != 5 || denied.Load() != 595 {
			t.Errorf("callers that came together: got %d served and %d denied, want 5 and 595", served.Load(), denied.Load())
		}
	})
}

// TestWaitForAsLongAsItTakes: the longest possible wait keeps the order, and only the
// first caller asks.
func TestWaitForAsLongAsItTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &counting{UniversalClient: redistest.BubbleClient(t, bubble(t)), before: func() { time.Sleep(5 * time.Millisecond) }}
		l := must(New(client, "wait", []Policy{TokenBucket{Rate: 2, Per: time.Second, Burst: 1}}, closed(time.Minute)))(t)
		must(0, l.Warm(t.Context()))(t)
		client.calls.Store(0)
		together(20, func(int) {
			if d, err := l.WaitFor(t.Context(), "s", 1, math.MaxInt64); err != nil || !d.Allowed {
				t.Errorf("a wait without a limit: got %+v, %v, want it allowed", d, err)
			}
		})
		if n := client.calls.Load(); n > 22 {
			t.Errorf("calls of Redis: got %d for 20 permits, want one each, or two more", n)
		}
	})
}

// TestWaitHearsOfWhatIsGivenBack: the first caller in the queue is admitted when a
// decision of this process is settled to less or refunded, or when the subject is reset.
func TestWaitHearsOfWhatIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]func(l *Limiter, d *Decision) error{
		"settle": func(_ *Limiter, d *Decision) error { _, err := d.Settle(context.Background(), 1); return err },
		"refund": func(_ *Limiter, d *Decision) error { return d.Refund(context.Background()) },
		"reset":  func(l *Limiter, _ *Decision) error { _, err := l.Reset(context.Background(), "s"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				policy := FixedWindow{Limit: 10, Window: time.Hour}
				for _, l := range []*Limiter{newTestLocal(t, nil, policy), inBubble(t, bubble(t), "wait", policy)} {
					first := must(l.TakeN(t.Context(), "s", 8))(t)
					time.AfterFunc(time.Second, func() {
						if err := free(l, &first); err != nil {
							t.Errorf("the refund: got %v, want the permits given back", err)
						}
					})
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					d, err := l.WaitN(ctx, "s", 5)
					cancel()
					if took := time.Since(began).Round(time.Millisecond); err != nil || !d.Allowed || took != time.Second {
						t.Errorf("the caller that waits: got %+v, %v after %v, want it allowed after 1 s", d, err, took)
					}
				}
			})
		})
	}
}

// TestWaitIgnoresAnOldDenial: one that was asked for before permits were given back, and
// arrives after that.
func TestWaitIgnoresAnOldDenial(t *testing.T) {
	t.Parallel()
	l := newTestLocal(t, nil, FixedWindow{Limit: 10, Window: time.Hour})
	w, _ := l.join("s", 1, nil)
	before := w.of.freed
	l.changed("s")
	w.of.answered(w, &Decision{}, nil, before)
	if w.of.last != nil {
		t.Errorf("an old denial: got %+v stored, want it ignored", w.of.last)
	}
	w.of.answered(w, &Decision{}, nil, w.of.freed)
	if w.of.last == nil {
		t.Error("the next denial: got it ignored too, want it stored")
	}
}

// TestWhatIsGivenBackWakesWaitersOfWith: also those of a limiter that With made, with the
// same policies or with one more.
func TestWhatIsGivenBackWakesWaitersOfWith(t *testing.T) {
	t.Parallel()
	window := FixedWindow{Limit: 1, Window: time.Hour}
	bans := WithBan(FixedWindow{Limit: 1, Window: time.Second}, Ban{After: 1, Within: time.Minute, For: time.Hour})
	for name, c := range map[string]struct {
		policy Policy
		free   func(t *testing.T, l *Limiter, d Decision) error
	}{
		"Refund": {window, func(t *testing.T, _ *Limiter, d Decision) error { return d.Refund(t.Context()) }},
		"Settle": {window, func(t *testing.T, _ *Limiter, d Decision) error { _, err := d.Settle(t.Context(), 0); return err }},
		"Reset":  {window, func(t *testing.T, l *Limiter, _ Decision) error { _, err := l.Reset(t.Context(), "s"); return err }},
		"Unban":  {bans, func(t *testing.T, l *Limiter, _ Decision) error { _, err := l.Unban(t.Context(), "s"); return err }},
	} {
		for with, policies := range map[string][]Policy{
			"the same policies": {c.policy},
			"one more":          {c.policy, FixedWindow{Name: "more", Limit: 100, Window: time.Hour}},
		} {
			t.Run(name+", "+with, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					l := newTestLocal(t, nil, c.policy)
					other := must(l.With(policies...))(t)
					d := must(l.Take(t.Context(), "s"))(t)
					must(l.Take(t.Context(), "s"))(t)
					time.Sleep(2 * time.Second) // only the ban is left of that policy
					began := time.Now()
					var wg sync.WaitGroup
					wg.Go(func() {
						if d, err := other.Wait(t.Context(), "s"); err != nil || !d.Allowed || time.Since(began) > 0 {
							t.Errorf("got allowed %t, %v after %v, want a permit at once", d.Allowed, err, time.Since(began))
						}
					})
					synctest.Wait()
					if n := l.Stats().Waiting; n != 1 {
						t.Errorf("before permits are given back: got %d waiting, want 1", n)
					}
					if err := c.free(t, l, d); err != nil {
						t.Errorf("got %v, want none", err)
					}
					wg.Wait()
					if n := len(l.queues.bySubject); n != 0 {
						t.Errorf("afterwards: got %d queues, want none", n)
					}
				})
			})
		}
	}
}

// TestWaitersOfWithQueueTogether, in the order of their calls, if their policies are the
// same.
func TestWaitersOfWithQueueTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := TokenBucket{Rate: 1, Per: time.Second}
		l := newTestLocal(t, nil, policy)
		both := []*Limiter{l, must(l.With(policy))(t)}
		const n = 6
		admitted := make(chan int, n)
		for i := range n {
			go func() {
				if _, err := both[i%2].Wait(t.Context(), "s"); err != nil {
					t.Errorf("got %v, want none", err)
				}
				admitted <- i
			}()
			synctest.Wait()
		}
		for want := range n {
			if i := <-admitted; i != want {
				t.Errorf("got the caller %d admitted, want %d", i, want)
			}
		}
	})
}
