package limit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// instance is the limiter of one of several processes.
type instance struct {
	*Limiter
	rdb *redistest.CutClient
}

// instances makes several processes on one miniredis in a bubble.
func instances(t *testing.T, m *miniredis.Miniredis, n int, opts Options, policies ...Policy) (all []instance) {
	t.Helper()
	for range n {
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, m)}
		all = append(all, instance{must(New(must(store.Open(rdb, nil))(t), "n", policies, &opts))(t), rdb})
	}
	return all
}

func cut(all []instance) {
	for _, i := range all {
		i.rdb.Cut("refused")
	}
}

// mend ends the outage, and returns when Redis decides again.
func mend(t *testing.T, all []instance) {
	t.Helper()
	for _, i := range all {
		i.rdb.Mend()
		for n := 0; must(i.Peek(t.Context(), "other"))(t).Degraded; n++ {
			if n == 100 {
				t.Fatal("ten seconds after the outage: got degraded decisions, want those of Redis")
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// takeAll returns how many permits an instance grants a subject now.
func takeAll(t *testing.T, i instance, degraded bool) (n int64) {
	t.Helper()
	for ; ; n++ {
		d := must(i.Take(t.Context(), "s"))(t)
		if d.Degraded != degraded {
			t.Fatalf("a take: got %+v, want degraded %t", d, degraded)
		}
		if !d.Allowed {
			return n
		}
	}
}

// aMinute returns how many permits ten instances grant in a minute. Redis grants some at
// the beginning, and is away for the rest.
func aMinute(t *testing.T, p Policy, known int, before int64) (granted int64) {
	t.Helper()
	all := instances(t, bubble(t), 10, Options{Instances: known}, p)
	began := time.Now()
	for ; granted < before; granted++ {
		if d := must(all[granted%10].Take(t.Context(), "s"))(t); !d.Allowed || d.Degraded {
			t.Fatalf("%T: request %d: got %+v, want Redis to grant it", p, granted, d)
		}
	}
	cut(all)
	step := 20 * time.Millisecond
	if redistest.Race { // an instance grants one permit in more than a second
		step = 60 * time.Millisecond
	}
	for time.Since(began) < time.Minute-time.Millisecond {
		for _, i := range all {
			granted += takeAll(t, i, true)
		}
		time.Sleep(step)
	}
	return granted
}

// TestInstancesShareALimit has ten processes of a limit of 500 a minute, and a minute without Redis.
func TestInstancesShareALimit(t *testing.T) {
	t.Parallel()
	const limit = 500
	for _, c := range []struct {
		Policy

		burst int64 // of a bucket
	}{
		{FixedWindow{Limit: limit, Window: time.Minute}, 0},
		{SlidingWindow{Limit: limit, Window: time.Minute}, 0},
		{SlidingLog{Limit: limit, Window: time.Minute}, 0},
		{CalendarWindow{Limit: limit, Every: Hour}, 0},
		{TokenBucket{Rate: limit, Per: time.Minute, Burst: limit / 10}, limit / 10},
		{TokenBucket{Rate: limit, Per: time.Minute, Burst: 1}, 1},
		{KeepOnChange(TokenBucket{Name: "kept", Rate: limit, Per: time.Minute, Burst: limit / 10}), limit / 10},
		{KeepOnChange(TokenBucket{Name: "kept-1", Rate: limit, Per: time.Minute, Burst: 1}), 1},
	} {
		p := c.Policy
		t.Run(p.PolicyName(), func(t *testing.T) {
			t.Parallel()
			most := limit + c.burst
			befores := []int64{0, 10, 200, 450, limit}
			if c.burst > 0 {
				befores = []int64{0, min(10, c.burst), c.burst}
			}
			controlled := true
			if redistest.Race { // it has nothing to find here; soak runs all without it
				befores = befores[1:2]
				_, controlled = p.(FixedWindow)
			}
			for _, before := range befores {
				synctest.Test(t, func(t *testing.T) {
					got := aMinute(t, p, 10, before)
					t.Logf("%d before: %d", before, got)
					if got > most*12/10 || got < most*9/10 {
						t.Errorf("%d permits before: got %d granted, want about the %d of the policy, and 1.2 times as many at most", before, got, most)
					}
				})
				if !controlled {
					continue
				}
				synctest.Test(t, func(t *testing.T) { // the control
					if got := aMinute(t, p, 0, before); got < 9*limit {
						t.Errorf("%d permits before, by instances that do not know of each other: got %d granted, want ten times the limit", before, got)
					}
				})
			}
		})
	}
}

// TestWhatAnInstanceDidNotSee: one instance grants everything before the outage, and the
// others have never seen the subject.
func TestWhatAnInstanceDidNotSee(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, bubble(t), 10, Options{Instances: 10}, FixedWindow{Limit: 100, Window: time.Minute})
		granted := takeAll(t, all[0], false)
		cut(all)
		for _, i := range all {
			granted += takeAll(t, i, true)
		}
		if granted != 190 {
			t.Errorf("granted in all: got %d, want the 100 of Redis and a share of 10 in each of the nine others", granted)
		}
	})
}

// TestALimitBelowTheInstances: an instance grants one permit if it knows of none that is
// taken, and otherwise none.
func TestALimitBelowTheInstances(t *testing.T) {
	t.Parallel()
	for _, before := range []int64{0, 1} {
		for _, p := range []Policy{
			FixedWindow{Limit: 3, Window: time.Minute},
			SlidingWindow{Limit: 3, Window: time.Minute},
			SlidingLog{Limit: 3, Window: time.Minute},
			CalendarWindow{Limit: 3, Every: Hour},
			TokenBucket{Rate: 3, Per: time.Minute},
		} {
			synctest.Test(t, func(t *testing.T) {
				all := instances(t, bubble(t), 10, Options{Instances: 10}, p)
				for _, i := range all { // all know
					must(i.TakeN(t.Context(), "s", 0))(t)
				}
				must(all[0].TakeN(t.Context(), "s", before))(t)
				for _, i := range all {
					must(i.Peek(t.Context(), "s"))(t)
				}
				cut(all)
				granted := int64(0)
				for _, i := range all {
					peek := must(i.Peek(t.Context(), "s"))(t)
					got := takeAll(t, i, true)
					if granted += got; peek.Allowed != (got > 0) || peek.Remaining != got || peek.Limit != 3 {
						t.Errorf("%T: a peek before %d were granted: got %+v, want it to foresee the take", p, got, peek)
					}
				}
				if want := 10 * (1 - before); granted != want {
					t.Errorf("%T: %d of 3 permits before: got %d granted by ten instances, want %d", p, before, granted, want)
				}
				if b, is := p.(TokenBucket); is && before == 0 {
					time.Sleep(10*b.Per/3 - 2*time.Millisecond)
					if got := takeAll(t, all[0], true); got != 0 {
						t.Errorf("before a tenth of the rate gave one back: got %d granted, want none", got)
					}
					time.Sleep(2 * time.Millisecond)
					if got := takeAll(t, all[0], true); got != 1 {
						t.Errorf("when a tenth of the rate gave one back: got %d granted, want one", got)
					}
					if err := all[0].SetInstances(1); err != nil {
						t.Fatal(err)
					}
					if d := must(all[0].Peek(t.Context(), "s"))(t); d.Allowed || d.Remaining != 0 {
						t.Errorf("alone, with ten in debt: got %+v, want none remaining", d)
					}
				}
			})
		}
	}
}

// TestACostAboveTheShare: it is denied while Redis is away, with a RetryAfter of a
// second, and granted when Redis is back.
func TestACostAboveTheShare(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{
		FixedWindow{Limit: 100, Window: time.Hour}, SlidingLog{Limit: 100, Window: time.Hour}, TokenBucket{Rate: 100, Per: time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			all := instances(t, bubble(t), 1, Options{Instances: 10}, p)
			l := all[0]
			must(l.TakeN(t.Context(), "s", 0))(t)
			cut(all)
			for cost, want := range map[int64]bool{10: true, 11: false, 100: false} {
				for range 2 {
					d := must(l.PeekN(t.Context(), "s", cost))(t)
					if d.Allowed != want || !d.Degraded || !want && d.RetryAfter != time.Second || d.Remaining != 10 {
						t.Errorf("%T: a peek of %d of a share of 10: got %+v, want it allowed %t, with a RetryAfter of a second otherwise", p, cost, d, want)
					}
				}
			}
			d := must(l.TakeN(t.Context(), "s", 11))(t)
			if d.Allowed || d.RetryAfter != time.Second {
				t.Errorf("%T: a take of 11 of a share of 10: got %+v, want a denial for a second", p, d)
			}
			if d := must(l.WaitFor(t.Context(), "s", 50, 500*time.Millisecond))(t); d.Allowed {
				t.Errorf("%T: a wait for 50 of a share of 10: got %+v, want a denial", p, d)
			}
			var wg sync.WaitGroup
			began := time.Now()
			wg.Go(func() {
				d, err := l.WaitN(t.Context(), "s", 50)
				if took := time.Since(began); err != nil || !d.Allowed || d.Degraded || took < time.Minute || took > time.Minute+2*time.Second {
					t.Errorf("%T: a wait for 50 of a share of 10: got %+v, %v after %v, want Redis to grant it after a minute", p, d, err, took)
				}
			})
			time.Sleep(time.Minute)
			mend(t, all)
			wg.Wait()
		})
	}
}

// TestRedisGoesOnByItself: Redis does not know what was granted in an outage. This
// process still does in the next outage.
func TestRedisGoesOnByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, bubble(t), 10, Options{Instances: 10}, FixedWindow{Limit: 1000, Window: time.Hour})
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
		policies := []Policy{FixedWindow{Limit: 1000, Window: time.Hour}}
		all := instances(t, bubble(t), 1, Options{}, policies...)
		l := all[0]
		other := instance{must(l.With(TokenBucket{Rate: 1000, Per: time.Hour}))(t), l.rdb}
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
		for _, bad := range []int{-1, mostInstances + 1} {
			if err := l.SetInstances(bad); err == nil || l.Instances() != 1 {
				t.Errorf("SetInstances(%d): got %v and %d instances, want an error and 1", bad, err, l.Instances())
			}
			if _, err := New(l.rdb, "n", policies, &Options{Instances: bad}); err == nil {
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
	l := newTestLocal(t, &Options{Instances: 10}, FixedWindow{Limit: 100, Window: time.Hour})
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
		all := instances(t, bubble(t), 1, Options{Instances: 1}, FixedWindow{Limit: 1000, Window: time.Hour}, SlidingLog{Limit: 1000, Window: time.Hour})
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
		all := instances(t, bubble(t), 1, Options{Instances: 10},
			FixedWindow{Limit: 100, Window: time.Hour}, SlidingLog{Limit: 200, Window: time.Hour},
			TokenBucket{Rate: 300, Per: time.Hour}, Shadow(CalendarWindow{Limit: 50, Every: Day}))
		l := all[0]
		must(l.TakeN(t.Context(), "s", 10))(t)
		cut(all)
		remaining := func(d Decision) (n []int64) {
			for s := range d.States() {
				n = append(n, s.Remaining)
			}
			return n
		}
		before := must(l.Peek(t.Context(), "s"))(t)
		var made []Decision
		for range 9 {
			made = append(made, must(l.Take(t.Context(), "s"))(t))
		}
		for i, want := range []struct {
			got  Decision
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

// TestAHintOfInstancesThatAreNotKnown: it is given once, where processes together admit
// more than the limit.
func TestAHintOfInstancesThatAreNotKnown(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	for name, c := range map[string]struct {
		opts   Options
		scaled int // the argument of SetInstances, unless it is 0
		want   int
	}{
		"not known":        {Options{}, 0, 1},
		"one":              {Options{Instances: 1}, 0, 0},
		"set later":        {Options{}, 3, 0},
		"without a limit":  {Options{Fail: store.FailOpen}, 0, 0},
		"without requests": {Options{Fail: store.FailClosed}, 0, 0},
	} {
		instancesHint = background.Hint{}
		var rdb redistest.AbsentClient
		rdb.Gone.Store(true)
		l := must(New(&rdb, "n", []Policy{FixedWindow{Limit: 9, Window: time.Hour}}, &c.opts))(t)
		if c.scaled > 0 {
			must(0, l.SetInstances(c.scaled))(t)
		}
		var text bytes.Buffer
		restore := redistest.DefaultLog(t, slog.NewTextHandler(&text, nil))
		for range 3 {
			if d, err := l.Take(t.Context(), "a subject"); err == nil != (c.opts.Fail != store.FailClosed) || err == nil && !d.Degraded {
				t.Errorf("%s: got %+v, %v, want no decision of Redis", name, d, err)
			}
		}
		near := must(NewLocal("n", []Policy{FixedWindow{Limit: 9, Window: time.Hour}}, nil))(t)
		must(near.Take(t.Context(), "a subject"))(t)
		restore()
		if n := strings.Count(text.String(), "set Instances to the number of your processes"); n != c.want || strings.Contains(text.String(), "a subject") {
			t.Errorf("%s: got %q, want %d lines with the remedy, and no subject", name, text.String(), c.want)
		}
	}
}
