package limit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// TestFiguresHold checks the figures of a decision. Remaining permits can be taken, and
// one more cannot. After NextAfter there is more, and a tick before there is not. After
// ResetAfter nothing is in use, and a tick before something is.
func TestFiguresHold(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			rng := redistest.Rand(t)
			for i := range redistest.Steps(2000) {
				p := randomPolicy(rng, k)
				if i < len(notable[k]) {
					p = notable[k][i]
				}
				r := must(p.compile())(t)
				step := max(grain(r), time.Microsecond)
				now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
				c := new(cell)
				take := func(c *cell, at time.Time, cost int64) State {
					into := []reading{{}}
					takeModel([]rule{r}, []*cell{c}, at.UnixMicro(), cost, into)
					return r.state(into[0], cost)
				}
				would := func(after time.Duration, cost int64) State {
					tried := *c
					tried.log = slices.Clone(c.log)
					return take(&tried, now.Add(after), cost)
				}
				for range 50 {
					s := take(c, now, randomCost(rng, r.id().limit))
					where := fmt.Sprintf("%+v: %+v", p, s)
					if s.Remaining > 0 && !would(0, s.Remaining).Allowed {
						t.Fatalf("%s: a take of Remaining permits: got a denial, want it allowed", where)
					}
					if s.Remaining < s.Limit {
						if would(0, s.Remaining+1).Allowed {
							t.Fatalf("%s: a take of Remaining+1 permits: got it allowed, want a denial", where)
						}
						if !would(s.NextAfter, s.Remaining+1).Allowed || would(s.NextAfter-step, s.Remaining+1).Allowed {
							t.Fatalf("%s: got NextAfter %v, want the first moment for Remaining+1 permits",
								where, s.NextAfter)
						}
					}
					if s.ResetAfter > 0 {
						if would(s.ResetAfter, 0).ResetAfter != 0 || would(s.ResetAfter-step, 0).ResetAfter == 0 {
							t.Fatalf("%s: got ResetAfter %v, want the first moment at which nothing is in use",
								where, s.ResetAfter)
						}
						if would(s.ResetAfter, 0).Remaining != s.Limit {
							t.Fatalf("%s: after ResetAfter: got %d permits remaining, want %d",
								where, would(s.ResetAfter, 0).Remaining, s.Limit)
						}
					}
					now = now.Add(randomPause(rng, &s, step))
				}
			}
		})
	}
}
