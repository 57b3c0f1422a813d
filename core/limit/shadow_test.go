package limit

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// enforcedPart returns a decision without what it reports about shadows.
func enforcedPart(d Decision) string {
	var kept []State
	for s := range d.States() {
		if !s.Shadow {
			kept = append(kept, s)
		}
	}
	d.first, d.rest = State{}, kept
	return describe(d)
}

// TestShadowsChangeNothingAndDoAsTheirTwins runs a set with shadows beside the same set
// without them. Each shadow has an enforced twin, which is asked whenever the set admits.
func TestShadowsChangeNothingAndDoAsTheirTwins(t *testing.T) {
	t.Parallel()
	m, rdb := newServer(t)
	rng := redistest.Rand(t)
	denied, beyond := 0, 0
	for i := range max(redistest.Steps(50_000)/100, 1) {
		policies := randomSet(rng, 2+i%3)
		shadows := 1 + rng.IntN(len(policies)-1)
		if i == 0 { // some costs of this set are beyond its shadow
			policies, shadows = []Policy{FixedWindow{Limit: 5, Window: time.Second}, FixedWindow{Limit: 1000, Window: time.Minute}}, 1
		}
		mixed := slices.Clone(policies[shadows:])
		for _, p := range policies[:shadows] {
			mixed = slices.Insert(mixed, rng.IntN(len(mixed)+1), Shadow(p))
		}
		watched := newClocked(t, m, rdb, fmt.Sprintf("w%d", i), mixed...)
		plain := newClocked(t, m, rdb, fmt.Sprintf("p%d", i), policies[shadows:]...)
		twins := map[string]*clocked{}
		for _, p := range policies[:shadows] {
			twins[p.PolicyName()] = newClocked(t, m, rdb, fmt.Sprintf("t%d", i), p)
		}
		most, step := int64(1<<40), time.Millisecond
		for _, r := range watched.rules {
			if step = max(step, grain(r)); !r.id().shadow {
				most = min(most, r.id().limit)
			}
		}
		last := watched.take(t, 0)
		for range 100 {
			states := append([]State{last.first}, last.rest...)
			watched.pause(randomPause(rng, &states[rng.IntN(len(states))], step))
			plain.now = watched.now
			cost := randomCost(rng, most)
			last = watched.take(t, cost)
			want := plain.take(t, cost)
			if enforcedPart(last) != enforcedPart(want) {
				t.Fatalf("%s, cost %d:\n got with shadows %s\nwant as without   %s",
					watched.policies, cost, enforcedPart(last), enforcedPart(want))
			}
			for s := range last.States() {
				if !s.Shadow {
					continue
				}
				twin := twins[s.Policy]
				twin.now = watched.now
				asked := cost
				if !want.Allowed || cost > s.Limit {
					asked = 0
				}
				d := twin.take(t, asked)
				if cost > s.Limit {
					beyond++
					if s.Allowed || s.RetryAfter <= 0 && s.Remaining < s.Limit {
						t.Fatalf("a cost of %d above the limit: got %+v, want a denial, with RetryAfter if in use",
							cost, s)
					}
				}
				if !s.Allowed {
					denied++
				}
				got := s
				got.Shadow = false
				if asked != cost {
					got.Allowed, got.RetryAfter = true, 0
				}
				if got != d.first {
					t.Fatalf("%s, cost %d:\n got shadow %+v\nwant as twin %+v", watched.policies, cost, got, d.first)
				}
			}
		}
	}
	if denied == 0 || beyond == 0 {
		t.Errorf("got %d shadow denials and %d costs beyond a capacity, want some of both", denied, beyond)
	}
}

// TestShadowsOnRealRedis does the same on a real clock, with policies that free nothing
// meanwhile.
func TestShadowsOnRealRedis(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		rng := redistest.Rand(t)
		// If two policies grant again at about the same time, either may bind.
		apart := []Policy{slow[0], FixedWindow{Limit: 100, Window: 200 * time.Hour}}
		for i, enforced := range append(each(slow), apart, slow[2:]) {
			var shadows []Policy
			for _, p := range narrow {
				shadows = append(shadows, Shadow(p))
			}
			limiters := [3]*Limiter{}
			for n, policies := range [][]Policy{slices.Concat(shadows, enforced), enforced, narrow[1:2]} {
				limiters[n] = must(New(storetest.At(t, rdb, prefix), fmt.Sprintf("n%d-%d", i, n), policies, closed(10*time.Second)))(t)
			}
			for range 60 {
				cost := rng.Int64N(9)
				got, err := limiters[0].TakeN(t.Context(), "s", cost)
				want, fault := limiters[1].TakeN(t.Context(), "s", cost)
				if err != nil || fault != nil {
					t.Fatalf("takes with and without shadows: got %v and %v, want no errors", err, fault)
				}
				if got.Allowed != want.Allowed || got.Policy != want.Policy || got.Remaining != want.Remaining || got.Limit != want.Limit {
					t.Fatalf("a take with shadows: got %+v, want as without shadows %+v", got, want)
				}
				if !want.Allowed || cost > narrow[1].(FixedWindow).Limit {
					continue
				}
				twin := must(limiters[2].TakeN(t.Context(), "s", cost))(t)
				for s := range got.States() {
					if s.Policy == twin.Policy && (s.Allowed != twin.Allowed || s.Remaining != twin.Remaining || !s.Shadow) {
						t.Fatalf("a shadow: got %+v, want as its twin %+v", s, twin)
					}
				}
			}
		}
	})
}

// narrow are policies that deny much of what slow policies admit.
var narrow = []Policy{
	TokenBucket{Name: "narrow-bucket", Rate: 1, Per: time.Hour, Burst: 5},
	FixedWindow{Name: "narrow-window", Limit: 6, Window: time.Hour},
	SlidingLog{Name: "narrow-log", Limit: 7, Window: time.Hour},
}

func TestShadowsAlone(t *testing.T) {
	t.Parallel()
	_, rdb := newServer(t)
	policies := []Policy{
		Shadow(FixedWindow{Name: "w", Limit: 2, Window: time.Hour}), Shadow(SlidingLog{Name: "l", Limit: 3, Window: time.Hour}),
		Shadow(TokenBucket{Name: "b", Rate: 4, Per: time.Hour}), Shadow(SlidingWindow{Name: "s", Limit: 5, Window: time.Hour}),
	}
	for _, set := range append(each(policies), policies) {
		far := must(New(rdb, "alone", set, closed(10*time.Second)))(t)
		near := must(NewLocal("alone", set, nil))(t)
		for _, l := range []*Limiter{far, near} {
			for _, cost := range []int64{1, 1, 1, 1, 1, 1, 3, 1 << 60} {
				d, err := l.TakeN(t.Context(), "s", cost)
				if err != nil || !d.Allowed || d.Policy != "" || d.Limit != 0 || d.Remaining != 0 || d.RetryAfter != 0 || d.ResetAfter != 0 {
					t.Fatalf("cost %d under shadows alone: got %+v, %v, want it allowed without figures", cost, d, err)
				}
				for s := range d.States() {
					if !s.Shadow || s.RetryAfter < 0 || s.RetryAfter > 2*time.Hour || cost > 5 && s.Allowed {
						t.Errorf("cost %d: got %+v, want a shadow with RetryAfter up to 2h, and a denial above 5",
							cost, s)
					}
				}
			}
			d, err := l.Take(t.Context(), "s")
			if err == nil {
				err = d.Refund(t.Context())
			}
			if err != nil {
				t.Errorf("the refund of what all shadows would have denied: got %v, want no error", err)
			}
			if _, err := l.TakeN(t.Context(), "s", -1); !errors.Is(err, ErrCost) {
				t.Errorf("a cost of -1: got %v, want ErrCost", err)
			}
			d, err = l.Peek(t.Context(), "s")
			if err != nil || !d.Allowed {
				t.Errorf("a peek under shadows alone: got %+v, %v, want it allowed", d, err)
			}
			for s := range d.States() {
				if s.Allowed || s.Remaining != 0 {
					t.Errorf("after all was taken: got %+v, want a denial with 0 remaining", s)
				}
			}
			must(l.Reset(t.Context(), "s"))(t)
		}
	}
}

// TestShadowsAreRefundedWhereTheyTook: a shadow that would have denied took nothing.
func TestShadowsAreRefundedWhereTheyTook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // where the clock moves within a script, a refund may find nothing
		policies := []Policy{Shadow(FixedWindow{Name: "shadow", Limit: 2, Window: time.Hour}), FixedWindow{Name: "on", Limit: 9, Window: time.Hour}}
		near := must(NewLocal("shadows", policies, nil))(t)
		for _, l := range []*Limiter{inBubble(t, bubble(t), "shadows", policies...), near} {
			var made []Decision
			for range 3 {
				made = append(made, must(l.Take(t.Context(), "s"))(t))
			}
			for i, want := range [][2]int64{{7, 0}, {8, 1}, {9, 2}} { // the third was denied by the shadow
				if err := made[2-i].Refund(t.Context()); err != nil {
					t.Errorf("refund %d: got %v, want no error", i+1, err)
				}
				d, err := l.Peek(t.Context(), "s")
				if err != nil || d.Remaining != want[0] || d.rest[0].Remaining != want[1] {
					t.Errorf("after %d refunds: got %+v, %v, want %d remaining and %d of the shadow",
						i+1, d, err, want[0], want[1])
				}
			}
		}
	})
}

func TestShadowIsItsPolicy(t *testing.T) {
	t.Parallel()
	p := FixedWindow{Name: "p", Limit: 3, Window: time.Hour}
	if Shadow(Shadow(p)) != Shadow(p) {
		t.Errorf("the shadow of a shadow: got %+v, want %+v", Shadow(Shadow(p)), Shadow(p))
	}
	var none *FixedWindow
	for _, bad := range [][]Policy{{Shadow(nil)}, {Shadow(none)}, {Shadow(p), p}, {Shadow(FixedWindow{})}} {
		if _, err := NewLocal("bad", bad, nil); err == nil {
			t.Errorf("NewLocal with %+v: got no error, want one", bad)
		}
	}
	_, rdb := newServer(t)
	for i, policies := range [][]Policy{{Shadow(p)}, {p}, {Shadow(p)}} { // what one has taken the next finds
		l := must(New(rdb, "turned-on", policies, closed(10*time.Second)))(t)
		if d, err := l.Take(t.Context(), "s"); err != nil || d.first.Remaining != int64(2-i) {
			t.Errorf("take %d: got %+v, %v, want %d remaining", i, d, err, 2-i)
		}
	}
}
