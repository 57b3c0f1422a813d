package limit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// changing are policies whose numbers may change. Each function makes its policy with
// other numbers.
var changing = map[string]func(rng *rand.Rand) Policy{
	"bucket": func(rng *rand.Rand) Policy {
		rates := []struct {
			rate int64
			per  time.Duration
		}{{10, time.Minute}, {11, time.Minute}, {1, time.Hour}, {1000, time.Second}, {1_000_000, time.Second}, {7, 1013 * time.Millisecond}}
		r := rates[rng.IntN(len(rates))]
		return TokenBucket{Name: "kept", Rate: r.rate, Per: r.per, Burst: 1 + rng.Int64N(20), MaxDebt: rng.Int64N(2) * 9}
	},
	"window": func(rng *rand.Rand) Policy {
		return FixedWindow{Name: "kept", Limit: 1 + rng.Int64N(20), Window: time.Minute, MaxDebt: rng.Int64N(2) * 9}
	},
	"calendar": func(rng *rand.Rand) Policy {
		return CalendarWindow{Name: "kept", Limit: 1 + rng.Int64N(20), Every: Hour, MaxDebt: rng.Int64N(2) * 9}
	},
	"sliding": func(rng *rand.Rand) Policy {
		return SlidingWindow{Name: "kept", Limit: 1 + rng.Int64N(20), Window: time.Minute}
	},
	"log": func(rng *rand.Rand) Policy {
		return SlidingLog{Name: "kept", Limit: 1 + rng.Int64N(20), Window: time.Minute}
	},
}

// versions are limiters that share one state and have different numbers, as processes
// have while you deploy a change.
func versions(tb testing.TB, rng *rand.Rand, m *miniredis.Miniredis, rdb *redis.Client, name string, of []func(*rand.Rand) Policy) (all []*clocked) {
	tb.Helper()
	cells := map[string]*cell{}
	for range 3 {
		var policies []Policy
		for i, numbers := range of {
			p := KeepOnChange(renamed(numbers(rng), fmt.Sprint("kept", i)))
			if rng.IntN(8) == 0 && len(of) > 1 {
				p = KeepOnChange(Shadow(p))
			}
			policies = append(policies, p)
		}
		c := newClocked(tb, m, rdb, name, policies...)
		c.share(cells)
		all = append(all, c)
	}
	return all
}

func renamed(p Policy, name string) Policy {
	switch p := p.(type) {
	case TokenBucket:
		p.Name = name
		return p
	case FixedWindow:
		p.Name = name
		return p
	case CalendarWindow:
		p.Name = name
		return p
	case SlidingWindow:
		p.Name = name
		return p
	case SlidingLog:
		p.Name = name
		return p
	}
	return p
}

// share gives a limiter the cells of all limiters, in the order of its own rules, where
// shadows come last.
func (c *clocked) share(cells map[string]*cell) {
	c.cells = nil
	for _, r := range c.rules {
		if cells[r.id().name] == nil {
			cells[r.id().name] = new(cell)
		}
		c.cells = append(c.cells, cells[r.id().name])
	}
}

// TestChangedNumbersEqualModels has three processes with different numbers take, refund
// and settle at random on one state. Each decision is the model's, and RetryAfter is
// neither too early nor too late.
func TestChangedNumbersEqualModels(t *testing.T) {
	t.Parallel()
	const each = 100
	cases := map[string][]string{"set": {"bucket", "window", "calendar", "sliding", "log"}}
	for form := range changing {
		cases[form] = []string{form}
	}
	for name, forms := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, rdb := newServer(t)
			rng := redistest.Rand(t)
			given, forgiven, over := 0, 0, 0
			missed := func() bool { return given == 0 || over == 0 || forgiven == 0 && name != "log" && name != "set" }
			many := max(redistest.Steps(25_000)/each, 1)
			for i := 0; i < many || i < many+10 && missed(); i++ {
				var of []func(*rand.Rand) Policy
				for at, n := range rng.Perm(len(forms)) {
					if at < 3 {
						of = append(of, changing[forms[n]])
					}
				}
				all := versions(t, rng, m, rdb, fmt.Sprintf("v%d", i), of)
				now, step := all[0].now, grain(all[0].rules[0])
				for _, r := range all[0].rules {
					step = max(step, grain(r))
				}
				by := func() *clocked {
					c := all[rng.IntN(len(all))]
					c.now = now
					return c
				}
				type taken struct {
					past
					by *clocked
				}
				var made []taken
				last := by().take(t, 0)
				for range each {
					c := by()
					states := append([]State{last.first}, last.rest...)
					c.pause(randomPause(rng, &states[rng.IntN(len(states))], step))
					now = c.now
					if len(made) > 0 && rng.IntN(4) == 0 {
						at := len(made) - 1 - rng.IntN(min(len(made), 5))
						p := made[at]
						made = slices.Delete(made, at, at+1)
						p.by.now = now
						around := []moment{{p.at, p.at}, guess(rng, p.at, time.Second)}[rng.IntN(2)]
						if p.by.unsettled() == nil && rng.IntN(2) == 0 {
							if p.by.settle(t, p.past, rng.Int64N(3*p.grant.cost+3), around) > 0 {
								forgiven++
							}
						} else if p.by.refund(t, p.past, around) {
							given++
						}
						continue
					}
					cost := randomCost(rng, mostEnforced(c.Limiter))
					last = c.take(t, cost)
					if last.Allowed && cost > 0 {
						made = append(made, taken{past{last.grant, now.UnixMicro()}, c})
					}
					if last.Allowed || rng.IntN(3) > 0 {
						continue
					}
					over++
					c.pause((last.RetryAfter - step) / step * step)
					now = c.now
					if len(forms) == 1 && c.take(t, cost).Allowed {
						t.Fatalf("%s: cost %d before RetryAfter %v: got it allowed, want a denial", c.policies, cost, last.RetryAfter)
					}
					c.pause(2 * step) // a set's steps are longer than the clocks of some of its policies
					if len(forms) == 1 {
						c.pause(-step)
					}
					now = c.now
					if last = c.take(t, cost); !last.Allowed {
						t.Fatalf("%s: cost %d after RetryAfter: got a denial, want it allowed", c.policies, cost)
					}
				}
			}
			if missed() {
				t.Errorf("got %d refunds, %d settlements that forgave, %d denials, want some of each", given, forgiven, over)
			}
		})
	}
}

// mostEnforced is the highest cost that every enforced policy of a limiter can grant.
func mostEnforced(l *Limiter) int64 {
	most := int64(exact)
	for _, r := range l.rules {
		if !r.id().shadow {
			most = min(most, r.id().limit)
		}
	}
	return most
}
