package limit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/internal/redistest"
)

// past is a decision that may be refunded.
type past struct {
	grant *grant
	at    int64
}

// refund gives back on both sides, and fails the test if they differ.
func (c *clocked) refund(tb testing.TB, p past, at moment) bool {
	tb.Helper()
	keys, args := c.remote.toConclude(&conclusion{grant: p.grant, how: refunds, token: token.New()})
	if len(keys) == 1 {
		return false
	}
	want := refundModel(c.rules, c.cells, c.now.UnixMicro(), p.grant, at)
	for try := range 2 { // the second finds the marker, if anything was given back
		result, err := c.remote.runAt(tb.Context(), settleScript, c.remote.Inside.Node(tb.Context(), keys[0]), keys, args([]any{integer(at.soonest), integer(at.latest), "0"})...)
		if err != nil {
			tb.Fatal(err)
		}
		if result.seen.at != c.now.UnixMicro() {
			tb.Fatalf("the server's clock: got %d, want %d", result.seen.at, c.now.UnixMicro())
		}
		if result.changed != want {
			tb.Fatalf("%s: call %d of a refund of %d taken %d µs ago as %+v: got given back %v, want %v",
				c.policies, try, p.grant.cost, c.now.UnixMicro()-p.at, at, result.changed, want)
		}
	}
	c.take(tb, 0) // the states are compared
	return want
}

// guess returns what may be known of a moment.
func guess(rng *rand.Rand, at int64, window time.Duration) moment {
	around := func() int64 {
		return rng.Int64N([]int64{1, 3, 5000, window.Microseconds()/2 + 1}[rng.IntN(4)])
	}
	return moment{at - around(), at + around()}
}

// TestRefundsEqualModels mixes takes, pauses and refunds: of decisions just made, late
// ones and repeated ones, with the moment known exactly or not.
func TestRefundsEqualModels(t *testing.T) {
	t.Parallel()
	const perPolicy = 100
	for _, k := range append(slices.Clone(kinds), "set") {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			m, rdb := newServer(t)
			rng := redistest.Rand(t)
			given, not := 0, 0
			many := max(redistest.Steps(100_000/len(kinds))/perPolicy, 1)
			for i := 0; i < many || i < many+50 && (given == 0 || not == 0); i++ {
				policies := []Policy{randomPolicy(rng, k)}
				switch {
				case k == "set":
					policies = randomSet(rng, 2+i%3)
				case i < len(notable[k]):
					policies[0] = notable[k][i]
				}
				c := newClocked(t, m, rdb, fmt.Sprintf("f%d", i), policies...)
				most, step := c.rules[0].id().limit, time.Microsecond
				for _, r := range c.rules {
					most, step = min(most, r.id().limit), max(step, grain(r))
				}
				last := c.take(t, 0)
				var made []past
				for range perPolicy {
					states := append([]State{last.first}, last.rest...)
					c.pause(randomPause(rng, &states[rng.IntN(len(states))], step))
					if len(made) > 0 && rng.IntN(3) == 0 {
						which := len(made) - 1 - rng.IntN(min(len(made), 5))
						at := moment{made[which].at, made[which].at}
						if rng.IntN(2) == 0 {
							at = guess(rng, made[which].at, last.first.Window)
						}
						if c.refund(t, made[which], at) {
							given++
						} else {
							not++
						}
						if rng.IntN(4) > 0 { // or else again
							made = slices.Delete(made, which, which+1)
						}
						continue
					}
					if last = c.take(t, randomCost(rng, most)); last.Allowed && last.grant.cost > 0 {
						made = append(made, past{last.grant, c.now.UnixMicro()})
					}
				}
			}
			if given == 0 || not == 0 {
				t.Errorf("got %d refunds that gave back and %d that did not, want some of both", given, not)
			}
		})
	}
}

func randomSet(rng *rand.Rand, size int) []Policy {
	var policies []Policy
	names := map[string]bool{}
	for len(policies) < size {
		p := randomPolicy(rng, kinds[rng.IntN(len(kinds))])
		if !names[p.PolicyName()] {
			names[p.PolicyName()] = true
			policies = append(policies, p)
		}
	}
	return policies
}

// isInstant reports whether a refund cannot tell this window from the next one.
func isInstant(p Policy) bool { return isBrief(p, time.Millisecond) }

// isBrief reports whether p has windows that are not longer than most.
func isBrief(p Policy, most time.Duration) bool {
	switch p := p.(type) {
	case FixedWindow:
		return p.Window <= most
	case SlidingWindow:
		return p.Window <= most
	}
	return false
}

// TestRefundAtOnceIsAsIfNeverTaken compares every figure before a take with
// those after its refund, in the same microsecond.
func TestRefundAtOnceIsAsIfNeverTaken(t *testing.T) {
	t.Parallel()
	m, rdb := newServer(t)
	rng := redistest.Rand(t)
	for i := range max(redistest.Steps(20_000)/50, 1) {
		policies := randomSet(rng, 1+i%4)
		for slices.ContainsFunc(policies, isInstant) {
			policies = randomSet(rng, 1+i%4)
		}
		c := newClocked(t, m, rdb, fmt.Sprintf("o%d", i), policies...)
		most, step := c.rules[0].id().limit, time.Microsecond
		for _, r := range c.rules {
			most, step = min(most, r.id().limit), max(step, grain(r))
		}
		last := c.take(t, 0)
		for range 50 {
			c.pause(randomPause(rng, &last.first, step))
			before := c.take(t, 0)
			last = c.take(t, 1+rng.Int64N(most))
			if !last.Allowed || rng.IntN(3) == 0 {
				continue
			}
			now := c.now.UnixMicro()
			if !c.refund(t, past{last.grant, now}, moment{now, now}) {
				t.Fatalf("%s: a refund at once: got nothing given back, want all", c.policies)
			}
			if after := c.take(t, 0); describe(after) != describe(before) {
				t.Fatalf("%s:\n got after the refund %s\nwant as before the take %s",
					c.policies, describe(after), describe(before))
			}
		}
	}
}

// TestRefundIsNoFreePermit gives each subject a twin, which never takes what the subject
// gives back, however late, and makes no refunds. The subject never has more left than
// the twin.
func TestRefundIsNoFreePermit(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			rng := redistest.Rand(t)
			equal, all := 0, 0
			for range max(redistest.Steps(40_000)/20, 1) {
				r := must(randomPolicy(rng, k).compile())(t)
				subject, twin := []*cell{{}}, []*cell{{}}
				now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).UnixMicro()
				take := func(cells []*cell, cost int64) (*grant, State) {
					g := newGrant("s", cost, 1)
					takeModel([]rule{r}, cells, now, cost, g.readings)
					return g, r.state(g.readings[0], cost)
				}
				var given *grant
				at := int64(0)
				for op := range 20 {
					cost := randomCost(rng, r.id().limit)
					g, s := take(subject, cost)
					switch {
					case op == 10 && s.Allowed && cost > 0:
						given, at = g, now
					case s.Allowed:
						take(twin, cost)
					}
					now += randomPause(rng, &s, max(grain(r), time.Microsecond)).Microseconds()
				}
				if given == nil {
					continue
				}
				refundModel([]rule{r}, subject, now, given, moment{at - rng.Int64N(2), at})
				_, s := take(subject, 0)
				_, o := take(twin, 0)
				_, timed := r.(*bucket)
				_, kept := r.(*keptBucket)
				if !timed && !kept && subject[0].from != twin[0].from {
					continue // another window: what is taken leaves at another time
				}
				if all++; s.Remaining > o.Remaining {
					t.Fatalf("%+v: got %+v after a refund, want no more remaining than %+v without the take", r, s, o)
				} else if s.Remaining == o.Remaining {
					equal++
				}
			}
			if equal < all/2 || all == 0 {
				t.Errorf("got %d of %d refunds that gave back all, want at least half", equal, all)
			}
		})
	}
}
