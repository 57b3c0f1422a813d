package limit_test

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

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// waited is how a call of WaitFor ended.
type waited struct {
	limit.Decision

	after time.Duration
}

// waitFor has callers come one after the other, a millisecond apart.
func waitFor(t *testing.T, most time.Duration, costs []int64, in func(i int) *limit.Limiter) []waited {
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
	bucket := limit.TokenBucket{Rate: 2, Per: time.Second, Burst: 1}
	for cost, policies := range map[int64][]limit.Policy{
		1: {bucket},
		7: {limit.PerRequest(bucket), limit.FixedWindow{Limit: 1000, Window: time.Hour}},
	} {
		tellsAtOnce(t, cost, policies)
	}
}

// tellsAtOnce tests policies, and one of them grants two requests a second.
func tellsAtOnce(t *testing.T, cost int64, policies []limit.Policy) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, nil, policies...)
		got := waitFor(t, 2*time.Second, slices.Repeat([]int64{cost}, 8), func(int) *limit.Limiter { return l })
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
	for _, kind := range lua.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rng, foreseen := redistest.Rand(t), 0
			for range 100 {
				s := specOf(rng, kind, random)
				s.once = rng.IntN(3) == 0
				p := s.policy()
				costs := make([]int64, 2+rng.IntN(12))
				for i := range costs {
					costs[i] = max(1, randomCost(rng, s.most()))
				}
				run := func(most time.Duration) (got []waited) {
					synctest.Test(t, func(t *testing.T) {
						l := newTestLocal(t, nil, p)
						got = waitFor(t, most, costs, func(int) *limit.Limiter { return l })
					})
					return got
				}
				want := run(math.MaxInt64 / 4)
				most := want[rng.IntN(len(want))].after + time.Duration(rng.IntN(3)-1)*time.Second
				for i, w := range run(most) {
					if w.Allowed && w.after > max(most, 0)+limit.DefaultBudget {
						t.Fatalf("%+v, %v, caller %d: got a permit after %v, want one within %v", p, costs, i, w.after, most)
					}
					if w.Allowed {
						continue
					}
					if w.after == 0 {
						foreseen++
						if max(w.RetryAfter, time.Millisecond) <= most || w.RetryAfter > want[i].after+2*time.Millisecond {
							t.Fatalf("%+v, %v, caller %d: got a denial for %v, want more than the %v that it would wait, and at most %v",
								p, costs, i, w.RetryAfter, most, want[i].after)
						}
					}
					break
				}
			}
			if foreseen < 5 && kind != "fast" { // whose waits are shorter than what is between two callers
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
		policy := limit.TokenBucket{Rate: 1, Per: time.Second, Burst: 4}
		rdb, calls := redistest.Counted(t)
		l := must(limit.New(rdb, "wait", []limit.Policy{policy}, closed(limit.DefaultBudget)))(t)
		other := must(limit.New(rdb, "wait", []limit.Policy{policy}, closed(limit.DefaultBudget)))(t)
		must(other.TakeN(t.Context(), "s", 4))(t)
		calls.Store(0)
		time.AfterFunc(2*time.Second, func() { _, _ = other.Take(context.Background(), "s") })
		got := waitFor(t, 3500*time.Millisecond, []int64{3, 1}, func(int) *limit.Limiter { return l })
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
		l := newTestLocal(t, &limit.Options{MaxWaiting: 1}, limit.FixedWindow{Limit: 1, Window: time.Second})
		must(l.Take(t.Context(), "s"))(t)
		var one sync.WaitGroup
		one.Go(func() {
			if d, err := l.WaitFor(t.Context(), "s", 1, time.Minute); err != nil || !d.Allowed {
				t.Errorf("the one that waits: got %+v, %v, want it allowed", d, err)
			}
		})
		synctest.Wait()
		if _, err := l.WaitFor(t.Context(), "s", 1, time.Minute); !errors.Is(err, limit.ErrQueue) {
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

// TestWaitForAfterOneHasLeft: the callers behind it move up.
func TestWaitForAfterOneHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, nil, limit.TokenBucket{Rate: 1, Per: time.Second, Burst: 3})
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
		client := &counting{UniversalClient: redistest.BubbleClient(t, redistest.Bubble(t)), before: func() { time.Sleep(5 * time.Millisecond) }}
		l := must(limit.New(client, "wait", []limit.Policy{limit.TokenBucket{Rate: 2, Per: time.Second, Burst: 1}}, closed(time.Minute)))(t)
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
		client := &counting{UniversalClient: redistest.BubbleClient(t, redistest.Bubble(t)), before: func() { time.Sleep(5 * time.Millisecond) }}
		l := must(limit.New(client, "wait", []limit.Policy{limit.TokenBucket{Rate: 2, Per: time.Second, Burst: 1}}, closed(time.Minute)))(t)
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

// TestWhenTheFirstLeavesTheNextIsAdmitted at once, if what it asks for is free: whatever the policy says of the
// larger cost that the first one waited for.
func TestWhenTheFirstLeavesTheNextIsAdmitted(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]limit.Policy{
		"bucket":  limit.TokenBucket{Rate: 10, Per: time.Hour},
		"kept":    limit.KeepOnChange(limit.TokenBucket{Name: "kept", Rate: 10, Per: time.Hour}),
		"window":  limit.FixedWindow{Limit: 10, Window: time.Hour},
		"sliding": limit.SlidingWindow{Limit: 10, Window: time.Hour},
		"log":     limit.SlidingLog{Limit: 10, Window: time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newTestLocal(t, nil, p)
			must(l.TakeN(t.Context(), "s", 7))(t)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() {
				if d, err := l.WaitN(ctx, "s", 5); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: five of three that are left: got %+v, %v, want it waiting until it leaves", name, d, err)
				}
			})
			synctest.Wait()
			began := time.Now()
			all.Go(func() {
				if d := must(l.Wait(t.Context(), "s"))(t); !d.Allowed || time.Since(began) > time.Millisecond {
					t.Errorf("%s: one of three that are left: got %+v after %v, want it when the first has left", name, d, time.Since(began))
				}
			})
			synctest.Wait()
			cancel()
			all.Wait()
		})
	}
}
