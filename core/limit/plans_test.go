package limit

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// Equal policies make one limiter, however they are written.
func TestWithMakesALimiterOnce(t *testing.T) {
	t.Parallel()
	l := must(NewLocal("plans", []Policy{FixedWindow{Limit: 1, Window: time.Hour}}, nil))(t)
	with := func(policies ...Policy) *Limiter { return must(l.With(policies...))(t) }
	bucket := TokenBucket{Rate: 1, Per: time.Second}
	fixed := FixedWindow{Limit: 2, Window: time.Hour}
	sliding := SlidingWindow{Limit: 3, Window: time.Hour}
	log := SlidingLog{Limit: 4, Window: time.Hour}
	named := FixedWindow{Name: "named", Limit: 2, Window: time.Hour}
	many := []Policy{bucket, fixed, sliding, log, FixedWindow{Limit: 9, Window: time.Minute}}
	for name, same := range map[string][2]*Limiter{
		"bucket":  {with(bucket), with(&bucket)},
		"fixed":   {with(fixed), with(&fixed)},
		"sliding": {with(sliding), with(&sliding)},
		"log":     {with(log), with(&log)},
		"shadow":  {with(Shadow(log)), with(Shadow(&log))},
		"request": {with(PerRequest(log)), with(PerRequest(&log))},
		"kept":    {with(KeepOnChange(named)), with(KeepOnChange(&named))},
		"many":    {with(many...), with(slices.Clone(many)...)},
	} {
		if same[0] != same[1] {
			t.Errorf("%s: got two limiters for equal policies, want one", name)
		}
	}
	distinct := []*Limiter{with(bucket), with(fixed), with(sliding), with(log), with(Shadow(log)), with(bucket, fixed), with(fixed, bucket), with(many...)}
	other := slices.Clone(many)
	other[4] = FixedWindow{Limit: 10, Window: time.Minute}
	distinct = append(distinct, with(other...))
	distinct = append(distinct, with(named), with(KeepOnChange(&named)))
	named.Limit, bucket.Rate = 3, 2
	distinct = append(distinct, with(&bucket), with(KeepOnChange(&named)))
	seen := map[*Limiter]bool{}
	for i, one := range distinct {
		if seen[one] {
			t.Errorf("plan %d: got the limiter of another plan, want one of its own", i)
		}
		seen[one] = true
	}
	for range 2 { // a fault is found again
		if _, err := l.With(FixedWindow{}); err == nil {
			t.Error("a policy without numbers: got no error, want one")
		}
	}
}

// TestPlansKnowTheirZones: a zone that is loaded again may have the address of a zone
// that nothing refers to any more.
func TestPlansKnowTheirZones(t *testing.T) {
	t.Parallel()
	l := must(NewLocal("plans", []Policy{FixedWindow{Limit: 1, Window: time.Hour}}, nil))(t)
	var policies []Policy
	for i := range 5 {
		policies = append(policies, FixedWindow{Limit: 1, Window: time.Duration(1+i) * time.Hour})
	}
	for i := range 60 {
		name := []string{"Asia/Shanghai", "Europe/Berlin", "America/Havana"}[i%3]
		last := CalendarWindow{Limit: 1, Every: Day, Location: Zone(name)}
		want := last.PolicyName()
		if got := must(l.With(append(policies, last)...))(t).set.Rules[5].Name; got != want {
			t.Fatalf("round %d: got the policy %s, want %s", i, got, want)
		}
		last.Location = nil
		runtime.GC()
	}
}

// TestPlansOfOthersAreNoKeys: a policy that is embedded in a type whose values refer to others
// makes a new limiter each time.
func TestPlansOfOthersAreNoKeys(t *testing.T) {
	t.Parallel()
	type tagged struct {
		FixedWindow

		tags []string
	}
	type labelled struct {
		FixedWindow

		Labels any // of a type that cannot be compared, or of one that can
	}
	type pointing struct{ *FixedWindow }
	type wrapping struct{ Policy }
	window := FixedWindow{Limit: 1, Window: time.Hour}
	l := must(NewLocal("plans", []Policy{window}, nil))(t)
	odd := tagged{window, []string{"a"}}
	for _, p := range []Policy{
		odd, &odd, Shadow(odd), PerRequest(odd), WithLease(odd, time.Minute),
		labelled{window, map[string]string{}}, wrapping{odd}, Shadow(wrapping{odd}), pointing{&window},
		Shadow(WithBan(WithLease(odd, time.Minute), Ban{After: 1, Within: time.Hour, For: time.Hour})),
	} {
		if d, err := must(l.With(p))(t).Take(t.Context(), "s"); err != nil || len(l.plans.made.Keys()) > 0 {
			t.Errorf("%T: got %+v, %v, want a decision", p, d, err)
		}
	}
	if _, err := l.With(window, window, window, window, odd); err == nil {
		t.Error("a name that is used twice: got no error, want one")
	}
	shared := window
	for _, most := range []int64{3, 4} {
		shared.Limit = most
		if got := must(l.With(pointing{&shared}))(t).MaxCost(); got != most {
			t.Errorf("the limit behind a pointer is %d: got a limiter of %d", most, got)
		}
	}
}

// No more limiters are stored than the bound says, and what they count stays.
func TestPlansAreBounded(t *testing.T) {
	t.Parallel()
	l := must(NewLocal("plans", []Policy{FixedWindow{Limit: 1, Window: time.Hour}}, nil))(t)
	const most = 50
	l.plans = newPlans(most)
	plan := func(i int) *Limiter {
		return must(l.With(FixedWindow{Name: "plan", Limit: int64(i) + 1, Window: time.Hour}))(t)
	}
	first := plan(0)
	if d, err := first.Take(t.Context(), "s"); err != nil || !d.Allowed {
		t.Fatalf("a take: got %+v, %v, want it allowed", d, err)
	}
	var wg sync.WaitGroup
	for begin := range 4 {
		wg.Go(func() {
			for i := begin; i < 2*most; i += 2 { // each is made by one of two
				plan(i)
			}
		})
	}
	wg.Wait()
	if n := l.plans.made.Len(); n > most {
		t.Errorf("stored limiters: got %d, want at most %d", n, most)
	}
	again := plan(0)
	if again == first {
		t.Error("With after many plans: got the first limiter, want another one: the first was to be forgotten")
	}
	if d, err := again.Take(t.Context(), "s"); err != nil || d.Allowed {
		t.Errorf("a second take under the plan: got %+v, %v, want its one permit to be taken", d, err)
	}
}

// BenchmarkWith gets a limiter for each request, of 10,000 plans, and compares that with
// a limiter that is made once.
func BenchmarkWith(b *testing.B) {
	l := must(NewLocal("plans", []Policy{FixedWindow{Limit: 1, Window: time.Hour}}, nil))(b)
	plan := func(i int) []Policy {
		return []Policy{TokenBucket{Name: "plan", Rate: int64(i%10_000) + 1, Per: time.Second}}
	}
	for i := range 10_000 {
		must(l.With(plan(i)...))(b)
	}
	for name, choose := range map[string]func(i int) *Limiter{
		"by hand": func(int) *Limiter { return l },
		"plans":   func(i int) *Limiter { return must(l.With(plan(i)...))(b) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := choose(i).Take(b.Context(), fmt.Sprint(i%100)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
