package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// withBans are the policies of oneOfEach, each with a ban.
var withBans = func() (all []Policy) {
	for i, p := range oneOfEach {
		all = append(all, WithBan(p, Ban{After: 1 + int64(i)%2, Within: time.Hour, For: time.Hour, Max: 3 * time.Hour}))
	}
	return all
}()

func randomBan(rng *rand.Rand) Ban {
	span := func() time.Duration {
		return time.Duration(1+rng.Int64N([]int64{5, 2000, 100_000, 90_000_000}[rng.IntN(4)])) * time.Millisecond
	}
	b := Ban{After: 1 + rng.Int64N(4), Within: span(), For: span()}
	switch rng.IntN(4) {
	case 0:
		b.Max = b.For
	case 1, 2:
		b.Max = b.For*time.Duration(2+rng.IntN(10)) + span()
	}
	return b
}

// randomBans returns a few policies, some of them with a ban and some of them shadows.
func randomBans(rng *rand.Rand, size int) []Policy {
	policies := randomSet(rng, size)
	for i := range policies {
		if i == 0 || rng.IntN(2) == 0 {
			policies[i] = WithBan(policies[i], randomBan(rng))
		}
		if rng.IntN(4) == 0 {
			policies[i] = Shadow(policies[i])
		}
	}
	return policies
}

// pauseOfBan prefers the moments at which a ban, the count of denials or the memory of a
// ban ends.
func pauseOfBan(rng *rand.Rand, l *Limiter, last *Decision, step time.Duration) time.Duration {
	states := append([]State{last.first}, last.rest...)
	at := rng.IntN(len(states))
	b := l.rules[at].id().ban
	if b == nil || rng.IntN(2) == 0 {
		return randomPause(rng, &states[at], step)
	}
	span := []int64{b.within, b.most, b.first, states[at].RetryAfter.Milliseconds() + b.most}[rng.IntN(4)]
	return time.Duration(max(span-int64(rng.IntN(2)), 0)) * time.Millisecond
}

// met counts the situations that the generated operations produced.
func metBans(met map[string]int, c []*cell, before []record) {
	for i := range c {
		now, was := c[i].ban, before[i]
		switch {
		case now.length > 0 && now.last != was.last && now.length > was.length && was.length > 0:
			met["doubled"]++
		case now.length > 0 && now.last != was.last:
			met["banned"]++
		case was.length > 0 && now.length == 0:
			met["forgotten"]++
		}
		if now.denials > was.denials && was.denials > 0 {
			met["counted"]++
		}
	}
}

// TestBansEqualModel compares policies with bans, alone and in sets, with the model, on a
// clock that the test sets.
func TestBansEqualModel(t *testing.T) {
	t.Parallel()
	m, rdb := newServer(t)
	rng := redistest.Rand(t)
	met := map[string]int{}
	const each = 200
	sets := max(redistest.Steps(100_000)/each, 1)
	missed := func() bool { // few bans are met twice
		return met["banned"] < sets || met["doubled"] < max(sets/20, 1) || met["counted"] < sets || met["forgotten"] < sets
	}
	i := 0
	for ; i < sets || i < 10*sets && missed(); i++ {
		policies := randomBans(rng, 1+i%3)
		if i == 0 { // one whose bans are met twice
			policies = []Policy{WithBan(FixedWindow{Limit: 1, Window: time.Second}, Ban{After: 1, Within: time.Minute, For: time.Second, Max: 10 * time.Second})}
		}
		c := newClocked(t, m, rdb, fmt.Sprintf("b%d", i), policies...)
		tightest, step := c.rules[0].id().limit, time.Millisecond
		for _, r := range c.rules {
			tightest, step = min(tightest, r.id().limit), max(step, grain(r))
		}
		last := c.take(t, 0)
		for range each {
			c.pause(pauseOfBan(rng, c.Limiter, &last, step))
			before := make([]record, len(c.cells))
			for i := range c.cells {
				before[i] = *c.cells[i].ban
			}
			cost := randomCost(rng, tightest)
			last = c.take(t, cost)
			metBans(met, c.cells, before)
			c.foreseen(t, &last, cost, step, rng)
			c.byHand(t, rng)
		}
	}
	if missed() {
		t.Errorf("got %v of %d sets of policies, want %d of each, and a twentieth doubled", met, i, sets)
	}
}

// foreseen sometimes checks that a denial ends when it said, and not earlier.
func (c *clocked) foreseen(t *testing.T, last *Decision, cost int64, step time.Duration, rng *rand.Rand) {
	t.Helper()
	if last.Allowed || cost == 0 || rng.IntN(3) > 0 || c.now.Add(last.RetryAfter).Year() >= 2200 {
		return
	}
	ends := (last.RetryAfter + step - 1) / step * step // a log and a fast bucket count in less
	if step == time.Millisecond && last.RetryAfter > step {
		c.pause(ends - 2*step)
		if d := must(c.PeekN(t.Context(), "s", cost))(t); d.Allowed {
			t.Fatalf("%s: cost %d before its RetryAfter of %v: got %s, want a denial", c.policies, cost, last.RetryAfter, describe(d))
		}
		c.pause(2 * step)
	} else {
		c.pause(ends)
	}
	was := *last
	if *last = c.take(t, cost); !last.Allowed {
		t.Fatalf("%s: cost %d after a RetryAfter of %v: got %s, want it allowed; it was %s", c.policies, cost, was.RetryAfter, describe(*last), describe(was))
	}
}

// byHand sometimes bans, lifts bans, or resets.
func (c *clocked) byHand(t *testing.T, rng *rand.Rand) {
	t.Helper()
	now := c.now.UnixMilli()
	var longest, enforced int64
	for i, r := range c.rules {
		left := c.cells[i].ban.left(now)
		longest = max(longest, left)
		if !r.id().shadow {
			enforced = max(enforced, left)
		}
	}
	switch rng.IntN(20) {
	case 0:
		length := 1 + rng.Int64N(1_000_000)
		if err := c.Ban(t.Context(), "s", time.Duration(length)*time.Millisecond-time.Duration(rng.IntN(2))); err != nil {
			t.Fatal(err)
		}
		for i, r := range c.rules {
			if hasBan(r) {
				*c.cells[i].ban = record{last: now + length, length: length}
			}
		}
	case 1:
		if found := must(c.Unban(t.Context(), "s"))(t); found != (longest > 0) {
			t.Fatalf("%s: Unban: got found %t with %d ms left, want found %t", c.policies, found, longest, longest > 0)
		}
		for _, cell := range c.cells {
			*cell.ban = record{}
		}
	case 2:
		if left := must(c.Banned(t.Context(), "s"))(t); left.Milliseconds() != enforced {
			t.Fatalf("%s: got banned for %v, want %d ms", c.policies, left, enforced)
		}
	case 3:
		must(c.Reset(t.Context(), "s"))(t)
		for _, was := range c.cells {
			*was = cell{ban: was.ban}
		}
	}
}

// TestBansInProcessEqualThoseInRedis does the same with a limiter on Redis and with one
// in process, on one clock.
func TestBansInProcessEqualThoseInRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := bubble(t)
		rng := redistest.Rand(t)
		sets, denied, i := max(redistest.Steps(40_000)/100, 1), 0, 0
		for ; i < sets || i < 10*sets && denied < sets; i++ {
			policies := randomBans(rng, 1+i%3)
			far := inBubble(t, m, fmt.Sprint("n", i), policies...)
			near := must(NewLocal("n", policies, nil))(t)
			most := mostOf(far)
			step := time.Millisecond
			for _, r := range far.rules {
				step = max(step, grain(r))
			}
			var last Decision
			for op := range 100 {
				if op > 0 {
					time.Sleep(min(pauseOfBan(rng, far, &last, step), 100*24*time.Hour).Truncate(time.Millisecond))
				}
				cost := randomCost(rng, most)
				switch rng.IntN(20) {
				case 0:
					d := time.Duration(1 + rng.Int64N(1e12))
					if err, fault := far.Ban(t.Context(), "s", d), near.Ban(t.Context(), "s", d); err != nil || fault != nil {
						t.Fatalf("two bans: got %v and %v, want no errors", err, fault)
					}
				case 1:
					if got, want := must(far.Unban(t.Context(), "s"))(t), must(near.Unban(t.Context(), "s"))(t); got != want {
						t.Fatalf("%+v: Unban: got found %t in Redis, want %t as in process", policies, got, want)
					}
				case 2:
					if got, want := must(far.Banned(t.Context(), "s"))(t), must(near.Banned(t.Context(), "s"))(t); got != want {
						t.Fatalf("%+v: got a ban of %v in Redis, want %v as in process", policies, got, want)
					}
				case 3:
					must(far.Reset(t.Context(), "s"))(t)
					must(near.Reset(t.Context(), "s"))(t)
				}
				var want Decision
				if rng.IntN(5) == 0 {
					last, want = must(far.PeekN(t.Context(), "s", cost))(t), must(near.PeekN(t.Context(), "s", cost))(t)
				} else {
					last, want = must(far.TakeN(t.Context(), "s", cost))(t), must(near.TakeN(t.Context(), "s", cost))(t)
				}
				if describe(last) != describe(want) {
					t.Fatalf("%+v, cost %d: the decision in Redis differs:\n got in Redis   %s\nwant as in process %s", policies, cost, describe(last), describe(want))
				}
				if last.Banned() {
					denied++
				}
			}
		}
		if denied < sets {
			t.Errorf("got %d denials by bans with %d sets of policies, want %d", denied, i, sets)
		}
	})
}
