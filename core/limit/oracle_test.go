package limit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// clocked is a limiter on a miniredis whose clock the test sets, beside the model of the
// same rules.
type clocked struct {
	*Limiter
	policies string
	server   *miniredis.Miniredis
	now      time.Time
	cells    []*cell
}

func newServer(tb testing.TB) (*miniredis.Miniredis, *redis.Client) {
	m := miniredis.RunT(tb)
	m.ClockTTL(true)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	tb.Cleanup(func() { rdb.Close() })
	return m, rdb
}

func newClocked(tb testing.TB, m *miniredis.Miniredis, rdb *redis.Client, name string, policies ...Policy) *clocked {
	tb.Helper()
	l := must(New(rdb, name, policies, closed(time.Minute)))(tb)
	c := &clocked{
		Limiter: l, policies: fmt.Sprintf("%+v", policies), server: m,
		now: time.Date(2026, 11, 20, 8, 0, 0, 123e6, time.UTC),
	}
	for range l.rules {
		c.cells = append(c.cells, &cell{ban: new(record)})
	}
	m.SetTime(c.now)
	return c
}

// pause moves the clock, at most to the year 2200: TIME in microseconds is exact until
// 2255.
func (c *clocked) pause(d time.Duration) {
	if next := c.now.Add(d); next.Year() < 2200 {
		c.now = next
	}
	c.server.SetTime(c.now)
}

// take takes on both sides. It fails the test if they differ, or if a Peek foresaw
// something else.
func (c *clocked) take(tb testing.TB, cost int64) Decision {
	tb.Helper()
	before, err := c.PeekN(context.Background(), "s", cost)
	if err != nil {
		tb.Fatalf("a peek of %d: got %v, want a decision", cost, err)
	}
	got, err := c.TakeN(context.Background(), "s", cost)
	if err != nil {
		tb.Fatalf("cost %d: got %v, want a decision", cost, err)
	}
	readings := make([]reading, len(c.rules))
	takeModel(c.rules, c.cells, c.now.UnixMicro(), cost, readings)
	if want := c.decision(&grant{cost: cost, readings: readings}); describe(got) != describe(want) {
		tb.Fatalf("%s, cost %d at %v:\n got %s\nwant %s", c.policies, cost, c.now, describe(got), describe(want))
	}
	if bans(got) > bans(before) { // it has begun
		return got
	}
	if before.Allowed != got.Allowed || before.RetryAfter != got.RetryAfter || !got.Allowed && describe(before) != describe(got) {
		tb.Fatalf("%s, cost %d at %v: the take differs from the peek before it:\npeek %s\n got %s", c.policies, cost, c.now, describe(before), describe(got))
	}
	return got
}

// bans returns how many policies ban.
func bans(d Decision) (n int) {
	for s := range d.States() {
		if s.Banned {
			n++
		}
	}
	return n
}

func describe(d Decision) string {
	d.grant = nil
	return fmt.Sprintf("%+v", d)
}

// takeModel takes of the whole limit, as the scripts do.
func takeModel(rules []rule, cells []*cell, now, cost int64, into []reading) {
	takeShare(rules, cells, 0, now, cost, into)
}

// TestScriptsEqualModels shows exactness on a clock that the test sets. Every decision of
// every algorithm is the model's, and RetryAfter is neither too early nor too late.
func TestScriptsEqualModels(t *testing.T) {
	t.Parallel()
	const perPolicy = 50
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			m, rdb := newServer(t)
			rng := redistest.Rand(t)
			for i := range max(redistest.Steps(50_000)/perPolicy, 1) {
				p := randomPolicy(rng, k)
				if i < len(notable[k]) {
					p = notable[k][i]
				}
				c := newClocked(t, m, rdb, fmt.Sprintf("m%d", i), p)
				r := c.rules[0]
				if b, ok := r.(*bucket); ok && b.fast != (k == kindFast) {
					t.Fatalf("%+v: got a fast bucket: %t, want %t", p, b.fast, k == kindFast)
				}
				step := max(grain(r), time.Microsecond)
				if _, err := c.TakeN(t.Context(), "s", r.id().limit+1); !errors.Is(err, ErrCost) {
					t.Fatalf("%+v: a cost above the capacity: got %v, want ErrCost", p, err)
				}
				last := c.take(t, 0)
				for range perPolicy {
					c.pause(randomPause(rng, &last.first, step))
					cost := randomCost(rng, r.id().limit)
					last = c.take(t, cost)
					if !last.Allowed && rng.IntN(3) == 0 && c.now.Add(last.RetryAfter).Year() < 2200 {
						c.pause(last.RetryAfter - step)
						if c.take(t, cost).Allowed {
							t.Fatalf("%+v: cost %d one tick before RetryAfter %v: got it allowed, want a denial",
								p, cost, last.RetryAfter)
						}
						c.pause(step)
						if last = c.take(t, cost); !last.Allowed {
							t.Fatalf("%+v: cost %d after RetryAfter: got a denial, want it allowed", p, cost)
						}
					}
				}
			}
		})
	}
}

// TestSetsEqualModels is the same for sets of one to four policies.
func TestSetsEqualModels(t *testing.T) {
	t.Parallel()
	m, rdb := newServer(t)
	rng := redistest.Rand(t)
	for i := range max(redistest.Steps(100_000)/200, 1) {
		policies := randomSet(rng, 2+i%3)
		c := newClocked(t, m, rdb, fmt.Sprintf("s%d", i), policies...)
		tightest, step := c.rules[0].id().limit, time.Millisecond
		for _, r := range c.rules {
			tightest, step = min(tightest, r.id().limit), max(step, grain(r))
		}
		last := c.take(t, 0)
		for range 200 {
			states := append([]State{last.first}, last.rest...)
			c.pause(randomPause(rng, &states[rng.IntN(len(states))], step))
			cost := randomCost(rng, tightest)
			last = c.take(t, cost)
			if !last.Allowed && rng.IntN(3) == 0 && c.now.Add(last.RetryAfter).Year() < 2200 {
				c.pause((last.RetryAfter + step - 1) / step * step)
				if last = c.take(t, cost); !last.Allowed {
					t.Fatalf("%+v: cost %d after RetryAfter: got a denial, want it allowed", policies, cost)
				}
			}
		}
	}
}
