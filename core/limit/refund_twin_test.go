package limit_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestRefundIsNoFreePermit gives each subject a twin, which never takes what the subject gives back,
// however late, and makes no refunds. The subject never has more left than the twin.
func TestRefundIsNoFreePermit(t *testing.T) {
	t.Parallel()
	for name, k := range limit.Kinds {
		for _, where := range []string{"in process", "in Redis"} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				rng := redistest.Rand(t)
				equal, all := 0, 0
				synctest.Test(t, func(t *testing.T) {
					m := redistest.Bubble(t)
					rdb := redistest.BubbleClient(t, m)
					for i := range max(redistest.Steps(20_000)/20, 20) {
						s := specOf(rng, name, random)
						l := newTestLocal(t, nil, s.policy())
						if where == "in Redis" {
							l = must(limit.New(rdb, fmt.Sprint("n", i), []limit.Policy{s.policy()}, closed(time.Minute)))(t)
						}
						var given limit.Decision
						for op := range 20 {
							cost := randomCost(rng, s.most())
							d := must(l.TakeN(t.Context(), "subject", cost))(t)
							switch {
							case op == 10 && d.Allowed && cost > 0:
								given = d
							case d.Allowed:
								must(l.TakeN(t.Context(), "twin", cost))(t)
							}
							time.Sleep(min(randomPause(rng, first(d), max(k.Step, time.Millisecond)), 1000*day))
						}
						if given.Policy == "" {
							continue
						}
						_ = given.Refund(t.Context())
						subject, twin := must(l.Peek(t.Context(), "subject"))(t), must(l.Peek(t.Context(), "twin"))(t)
						if !k.Drains && subject.ResetAfter != twin.ResetAfter {
							continue // another window: what is taken leaves at another time
						}
						if all++; subject.Remaining > twin.Remaining {
							t.Fatalf("%+v: got %+v after a refund, want no more remaining than %+v without the take", s, subject, twin)
						} else if subject.Remaining == twin.Remaining {
							equal++
						}
					}
				})
				if equal < all/2 || all == 0 {
					t.Errorf("got %d of %d refunds that gave back all, want at least half", equal, all)
				}
			})
		}
	}
}
