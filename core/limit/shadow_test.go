package limit_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

func TestShadowsAlone(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	policies := []limit.Policy{
		limit.Shadow(limit.FixedWindow{Name: "w", Limit: 2, Window: time.Hour}), limit.Shadow(limit.SlidingLog{Name: "l", Limit: 3, Window: time.Hour}),
		limit.Shadow(limit.TokenBucket{Name: "b", Rate: 4, Per: time.Hour}), limit.Shadow(limit.SlidingWindow{Name: "s", Limit: 5, Window: time.Hour}),
	}
	for _, set := range append(each(policies), policies) {
		far := must(limit.New(rdb, "alone", set, closed(patience)))(t)
		near := must(limit.NewLocal("alone", set, nil))(t)
		for _, l := range []*limit.Limiter{far, near} {
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
			if _, err := l.TakeN(t.Context(), "s", -1); !errors.Is(err, limit.ErrCost) {
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
		policies := []limit.Policy{limit.Shadow(limit.FixedWindow{Name: "shadow", Limit: 2, Window: time.Hour}), limit.FixedWindow{Name: "on", Limit: 9, Window: time.Hour}}
		near := must(limit.NewLocal("shadows", policies, nil))(t)
		for _, l := range []*limit.Limiter{inBubble(t, redistest.Bubble(t), "shadows", policies...), near} {
			var made []limit.Decision
			for range 3 {
				made = append(made, must(l.Take(t.Context(), "s"))(t))
			}
			for i, want := range [][2]int64{{7, 0}, {8, 1}, {9, 2}} { // the third was denied by the shadow
				if err := made[2-i].Refund(t.Context()); err != nil {
					t.Errorf("refund %d: got %v, want no error", i+1, err)
				}
				d, err := l.Peek(t.Context(), "s")
				if err != nil || d.Remaining != want[0] || viewOf(d).States[1].Remaining != want[1] {
					t.Errorf("after %d refunds: got %+v, %v, want %d remaining and %d of the shadow",
						i+1, d, err, want[0], want[1])
				}
			}
		}
	})
}

func TestShadowIsItsPolicy(t *testing.T) {
	t.Parallel()
	p := limit.FixedWindow{Name: "p", Limit: 3, Window: time.Hour}
	if limit.Shadow(limit.Shadow(p)) != limit.Shadow(p) {
		t.Errorf("the shadow of a shadow: got %+v, want %+v", limit.Shadow(limit.Shadow(p)), limit.Shadow(p))
	}
	var none *limit.FixedWindow
	for _, bad := range [][]limit.Policy{{limit.Shadow(nil)}, {limit.Shadow(none)}, {limit.Shadow(p), p}, {limit.Shadow(limit.FixedWindow{})}} {
		if _, err := limit.NewLocal("bad", bad, nil); err == nil {
			t.Errorf("NewLocal with %+v: got no error, want one", bad)
		}
	}
	_, rdb := redistest.Miniredis(t)
	for i, policies := range [][]limit.Policy{{limit.Shadow(p)}, {p}, {limit.Shadow(p)}} { // what one has taken the next finds
		l := must(limit.New(rdb, "turned-on", policies, closed(patience)))(t)
		if d, err := l.Take(t.Context(), "s"); err != nil || first(d).Remaining != int64(2-i) {
			t.Errorf("take %d: got %+v, %v, want %d remaining", i, d, err, 2-i)
		}
	}
}
