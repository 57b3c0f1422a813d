package limit_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestRedisGoesOnByItself: Redis does not know what was granted in an outage. This
// process still does in the next outage.
func TestRedisGoesOnByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, redistest.Bubble(t), 10, limit.Options{Instances: 10}, limit.FixedWindow{Limit: 1000, Window: time.Hour})
		for n := range 300 {
			must(all[n%10].Take(t.Context(), "s"))(t)
		}
		l := all[3]
		for round, want := range []int64{70, 0, 0} {
			cut(all)
			if got := takeAll(t, l, true); got != want {
				t.Errorf("outage %d: got %d granted, want %d", round, got, want)
			}
			mend(t, all)
			if d := must(l.Take(t.Context(), "s"))(t); !d.Allowed || d.Degraded || d.Remaining != int64(699-round) {
				t.Errorf("after outage %d: got %+v, want Redis to grant it of the 700 that are left there", round, d)
			}
		}
	})
}

// TestInstancesMayChange during an outage. What was granted before counts as if each of
// the new number had granted it.
func TestInstancesMayChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policies := []limit.Policy{limit.FixedWindow{Limit: 1000, Window: time.Hour}}
		all := instances(t, redistest.Bubble(t), 1, limit.Options{}, policies...)
		l := all[0]
		other := instance{must(l.With(limit.TokenBucket{Rate: 1000, Per: time.Hour}))(t), l.rdb}
		set := func(n int) {
			t.Helper()
			if err := l.SetInstances(n); err != nil || other.Instances() != n {
				t.Fatalf("SetInstances(%d): got %v, and %d for a limiter that With made, want no error and the same number", n, err, other.Instances())
			}
		}
		set(10)
		must(l.TakeN(t.Context(), "s", 200))(t)
		cut(all)
		if got := takeAll(t, other, true); got != 100 {
			t.Errorf("for a limiter that With made: got %d granted, want a tenth of the limit", got)
		}
		if d := must(l.TakeN(t.Context(), "s", 40))(t); !d.Allowed || d.Remaining != 40 {
			t.Errorf("half of the share: got %+v, want it granted and 40 left", d)
		}
		set(20)
		if got := takeAll(t, l, true); got != 20 {
			t.Errorf("among 20 instances: got %d granted of the 400 that are left, want 20", got)
		}
		set(1)
		for _, bad := range []int{-1, 1_000_001} {
			if err := l.SetInstances(bad); err == nil || l.Instances() != 1 {
				t.Errorf("SetInstances(%d): got %v and %d instances, want an error and 1", bad, err, l.Instances())
			}
			if _, err := limit.New(l.rdb, "n", policies, &limit.Options{Instances: bad}); err == nil {
				t.Errorf("Instances is %d: got no error, want one", bad)
			}
		}
		if got := takeAll(t, l, true); got != 0 {
			t.Errorf("alone, when nothing is left: got %d granted, want none", got)
		}
	})
}

// TestInstancesOfALocalLimiter: Instances has no effect, and the limiter has the whole
// limit.
func TestInstancesOfALocalLimiter(t *testing.T) {
	t.Parallel()
	l := newTestLocal(t, &limit.Options{Instances: 10}, limit.FixedWindow{Limit: 100, Window: time.Hour})
	if err := l.SetInstances(20); err != nil {
		t.Fatal(err)
	}
	if d := must(l.TakeN(t.Context(), "s", 100))(t); !d.Allowed {
		t.Errorf("a local limiter with Instances: got %+v, want the whole limit", d)
	}
}

// TestInstancesChangeWhileRunning is for the race detector. It also checks that the sum
// stays within the limit.
func TestInstancesChangeWhileRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, redistest.Bubble(t), 1, limit.Options{Instances: 1}, limit.FixedWindow{Limit: 1000, Window: time.Hour}, limit.SlidingLog{Limit: 1000, Window: time.Hour})
		l := all[0]
		var mu sync.Mutex
		granted := 0
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for n := range 100 {
					d, err := l.Take(t.Context(), "s")
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if d.Allowed {
						granted++
					}
					mu.Unlock()
					if n%7 == 0 {
						_ = d.Refund(t.Context())
					}
					time.Sleep(time.Millisecond)
				}
			})
			wg.Go(func() {
				for n := range 100 {
					if err := l.SetInstances(1 + n%20); err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		time.Sleep(30 * time.Millisecond)
		cut(all)
		wg.Wait()
		if granted == 0 || granted > 1000 {
			t.Errorf("while the instances change: got %d granted, want some and no more than the limit", granted)
		}
	})
}

// TestASetIsSharedByEachPolicy, including a shadow, and refunds give back to each.
func TestASetIsSharedByEachPolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, redistest.Bubble(t), 1, limit.Options{Instances: 10},
			limit.FixedWindow{Limit: 100, Window: time.Hour}, limit.SlidingLog{Limit: 200, Window: time.Hour},
			limit.TokenBucket{Rate: 300, Per: time.Hour}, limit.Shadow(limit.CalendarWindow{Limit: 50, Every: limit.Day}))
		l := all[0]
		must(l.TakeN(t.Context(), "s", 10))(t)
		cut(all)
		remaining := func(d limit.Decision) (n []int64) {
			for s := range d.States() {
				n = append(n, s.Remaining)
			}
			return n
		}
		before := must(l.Peek(t.Context(), "s"))(t)
		var made []limit.Decision
		for range 9 {
			made = append(made, must(l.Take(t.Context(), "s"))(t))
		}
		for i, want := range []struct {
			got  limit.Decision
			want []int64
		}{{before, []int64{9, 19, 29, 4}}, {made[0], []int64{8, 18, 28, 3}}, {made[3], []int64{5, 15, 25, 0}}, {made[8], []int64{0, 10, 20, 0}}} {
			if got := remaining(want.got); !want.got.Allowed || fmt.Sprint(got) != fmt.Sprint(want.want) {
				t.Errorf("decision %d: got %v remaining, want %v and it allowed", i, got, want.want)
			}
		}
		if d := must(l.Take(t.Context(), "s"))(t); d.Allowed {
			t.Errorf("a tenth permit of 9: got %+v, want a denial", d)
		}
		for _, d := range made {
			if err := d.Refund(t.Context()); err != nil {
				t.Errorf("a refund: got %v, want no error", err)
			}
		}
		if d := must(l.Peek(t.Context(), "s"))(t); describe(d) != describe(before) {
			t.Errorf("after all is given back: got\n%s, want\n%s", describe(d), describe(before))
		}
		if found, err := l.Reset(t.Context(), "s"); !found || err == nil {
			t.Errorf("a reset in an outage: got %t, %v, want it found here, and the error of Redis", found, err)
		}
		if d := must(l.Peek(t.Context(), "s"))(t); d.Remaining != 10 {
			t.Errorf("after a reset: got %d remaining, want the share of 10", d.Remaining)
		}
	})
}

// TestADeniedSubjectStaysDenied: a seed that leaves nothing is stored in process although
// nothing was taken there.
func TestADeniedSubjectStaysDenied(t *testing.T) {
	t.Parallel()
	for _, p := range limit.Steady { // but for what drains at once
		synctest.Test(t, func(t *testing.T) {
			all := instances(t, redistest.Bubble(t), 1, limit.Options{Instances: 2}, p)
			takeAll(t, all[0], false)
			cut(all)
			for range 3 {
				if d := must(all[0].Take(t.Context(), "s"))(t); d.Allowed || d.RetryAfter <= 0 {
					t.Errorf("%+v: got %+v, want a denial with a RetryAfter", p, d)
				}
			}
		})
	}
}

// TestAResetForgetsTheSeed of its subject, and no other seed.
func TestAResetForgetsTheSeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, redistest.Bubble(t), 1, limit.Options{Instances: 10}, limit.FixedWindow{Limit: 100, Window: time.Hour})
		l := all[0]
		for _, subject := range []string{"s", "kept"} {
			must(l.TakeN(t.Context(), subject, 50))(t)
		}
		must(l.Reset(t.Context(), "s"))(t)
		cut(all)
		for subject, want := range map[string]int64{"s": 10, "kept": 5} {
			if d := must(l.Peek(t.Context(), subject))(t); d.Remaining != want || !d.Degraded {
				t.Errorf("%s: got %+v, want %d remaining", subject, d, want)
			}
		}
	})
}
