package limit_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// instance is the limiter of one of several processes.
type instance struct {
	*limit.Limiter
	rdb *redistest.CutClient
}

// instances makes several processes on one miniredis in a bubble.
func instances(t *testing.T, m *miniredis.Miniredis, n int, opts limit.Options, policies ...limit.Policy) (all []instance) {
	t.Helper()
	for range n {
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, m)}
		all = append(all, instance{must(limit.New(must(store.Open(rdb, nil))(t), "n", policies, &opts))(t), rdb})
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
func aMinute(t *testing.T, p limit.Policy, known int, before int64) (granted int64) {
	t.Helper()
	all := instances(t, redistest.Bubble(t), 10, limit.Options{Instances: known}, p)
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
	const most = 500
	for _, c := range []struct {
		limit.Policy

		burst int64 // of a bucket
	}{
		{limit.FixedWindow{Limit: most, Window: time.Minute}, 0},
		{limit.SlidingWindow{Limit: most, Window: time.Minute}, 0},
		{limit.SlidingLog{Limit: most, Window: time.Minute}, 0},
		{limit.CalendarWindow{Limit: most, Every: limit.Hour}, 0},
		{limit.TokenBucket{Rate: most, Per: time.Minute, Burst: most / 10}, most / 10},
		{limit.TokenBucket{Rate: most, Per: time.Minute, Burst: 1}, 1},
		{limit.KeepOnChange(limit.TokenBucket{Name: "kept", Rate: most, Per: time.Minute, Burst: most / 10}), most / 10},
		{limit.KeepOnChange(limit.TokenBucket{Name: "kept-1", Rate: most, Per: time.Minute, Burst: 1}), 1},
	} {
		p := c.Policy
		t.Run(p.PolicyName(), func(t *testing.T) {
			t.Parallel()
			all := most + c.burst
			befores := []int64{0, 10, 200, 450, most}
			if c.burst > 0 {
				befores = []int64{0, min(10, c.burst), c.burst}
			}
			controlled := true
			if redistest.Race { // it has nothing to find here; make full runs all without it
				befores = befores[1:2]
				_, controlled = p.(limit.FixedWindow)
			}
			for _, before := range befores {
				synctest.Test(t, func(t *testing.T) {
					got := aMinute(t, p, 10, before)
					t.Logf("%d before: %d", before, got)
					if got > all*12/10 || got < all*9/10 {
						t.Errorf("%d permits before: got %d granted, want about the %d of the policy, and 1.2 times as many at most", before, got, all)
					}
				})
				if !controlled {
					continue
				}
				synctest.Test(t, func(t *testing.T) { // the control
					if got := aMinute(t, p, 0, before); got < 9*most {
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
		all := instances(t, redistest.Bubble(t), 10, limit.Options{Instances: 10}, limit.FixedWindow{Limit: 100, Window: time.Minute})
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
		for _, p := range []limit.Policy{
			limit.FixedWindow{Limit: 3, Window: time.Minute},
			limit.SlidingWindow{Limit: 3, Window: time.Minute},
			limit.SlidingLog{Limit: 3, Window: time.Minute},
			limit.CalendarWindow{Limit: 3, Every: limit.Hour},
			limit.TokenBucket{Rate: 3, Per: time.Minute},
		} {
			synctest.Test(t, func(t *testing.T) {
				all := instances(t, redistest.Bubble(t), 10, limit.Options{Instances: 10}, p)
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
				if b, is := p.(limit.TokenBucket); is && before == 0 {
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
	for _, p := range []limit.Policy{
		limit.FixedWindow{Limit: 100, Window: time.Hour}, limit.SlidingLog{Limit: 100, Window: time.Hour}, limit.TokenBucket{Rate: 100, Per: time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			all := instances(t, redistest.Bubble(t), 1, limit.Options{Instances: 10}, p)
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
