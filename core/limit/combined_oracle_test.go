package limit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/neap-go/neap/internal/redistest"
)

// modeled is a process with a limiter on Redis, beside models of everything that the
// limiter and Redis know.
type modeled struct {
	instance

	redis map[string]*cell // by name, with their bans; of all processes
	local map[string]*cell // of this one
	told  map[string]seed  // by Redis, to this process
}

// cellsIn returns the cells of the rules in their order. A rule without a cell gets a new
// one.
func (p *modeled) cellsIn(all map[string]*cell) (cells []*cell) {
	for _, r := range p.rules {
		name := r.id().name
		if all[name] == nil {
			all[name] = &cell{ban: new(record)}
		}
		cells = append(cells, all[name])
	}
	return cells
}

// wants returns what the models decide at that time, by Redis or without it.
func (p *modeled) wants(g *grant, now int64) Decision {
	own := &grant{cost: g.cost, peek: g.peek, readings: make([]reading, len(p.rules))}
	if !g.local {
		takeModel(p.rules, p.cellsIn(p.redis), now, g.asks(), own.readings)
		for i, r := range p.rules {
			p.told[r.id().name] = seed{now, own.readings[i]}
			if hasBan(r) {
				p.hear(p.cellsIn(p.local)[i].ban, own.readings[i].ban, now/1000)
			}
		}
		return p.decision(own)
	}
	cells := p.cellsIn(p.local)
	for i, r := range p.rules {
		if last, known := p.told[r.id().name]; known {
			began := cell{ban: cells[i].ban}
			r.resume(&began, last.reading, last.at)
			r.advance(&began, now)
			if r.advance(cells[i], now); remains(r, &began) < remains(r, cells[i]) {
				*cells[i] = began
			}
		}
	}
	clear(p.told)
	takeShare(p.rules, cells, int64(p.Instances()), now, g.asks(), own.readings)
	return p.decision(own)
}

// hear has the process know what Redis says about a ban: it replaces what Redis said
// before, and not a longer ban that this process has begun itself.
func (*modeled) hear(rec *record, left, now int64) {
	lasts := now < rec.last
	switch {
	case left == 0 && lasts && rec.told:
		*rec = record{}
	case left > 0 && (rec.told || now+left >= rec.last):
		whole := left
		if lasts {
			whole = max(left, rec.length)
		}
		*rec = record{last: now + left, length: whole, told: true}
	}
}

// ask takes, on Redis or without it, and compares it with the models.
func (p *modeled) ask(t *testing.T, cost int64) Decision {
	t.Helper()
	now := time.Now().UnixMicro()
	got, err := p.TakeN(t.Context(), "s", cost)
	if err != nil {
		t.Fatalf("%+v, cost %d: got %v, want a decision", p.rules, cost, err)
	}
	if got.grant.local {
		now = got.grant.at
	}
	want := p.wants(got.grant, now)
	want.Degraded, want.Cause = got.grant.local, got.Cause
	if describe(got) != describe(want) {
		t.Fatalf("%s, %d instances, cost %d at %d:\n got %s\nwant %s", p.signature, p.Instances(), cost, now, describe(got), describe(want))
	}
	return got
}

// byHand bans, lifts bans, or resets.
func (p *modeled) byHand(t *testing.T, rng *rand.Rand) {
	t.Helper()
	now := time.Now().UnixMilli()
	both := slices.Concat(p.cellsIn(p.redis), p.cellsIn(p.local))
	set := func(rec record) {
		for i, r := range slices.Concat(p.rules, p.rules) {
			if hasBan(r) {
				*both[i].ban = rec
			}
		}
	}
	switch rng.IntN(3) {
	case 0:
		length := 1 + rng.Int64N(1_000_000)
		must(0, p.Ban(t.Context(), "s", time.Duration(length)*time.Millisecond))(t)
		set(record{last: now + length, length: length, told: true})
	case 1:
		must(p.Unban(t.Context(), "s"))(t)
		set(record{})
	case 2:
		must(p.Reset(t.Context(), "s"))(t)
		for _, was := range both {
			*was = cell{ban: was.ban}
		}
		clear(p.told)
	}
}

// combined returns processes with sets of KeepOnChange policies. Some policies ban, are
// shadows, or count requests. Each process has its own numbers.
func combined(t *testing.T, m *miniredis.Miniredis, rng *rand.Rand, name string) (all []*modeled) {
	t.Helper()
	forms := []string{"bucket", "window", "calendar", "sliding", "log"}
	rng.Shuffle(len(forms), func(i, j int) { forms[i], forms[j] = forms[j], forms[i] })
	forms = forms[:1+rng.IntN(4)]
	var wraps []func(Policy) Policy
	for i := range forms {
		b, once, bans := randomBan(rng), rng.IntN(4) == 0, i == 0 || rng.IntN(2) == 0
		wraps = append(wraps, func(p Policy) Policy {
			if once {
				p = PerRequest(p)
			}
			if bans {
				p = WithBan(p, b)
			}
			return p
		})
	}
	redis := map[string]*cell{}
	for range 3 {
		var policies []Policy
		for i, form := range forms {
			p := wraps[i](renamed(changing[form](rng), fmt.Sprint("kept", i)))
			if rng.IntN(8) == 0 {
				p = Shadow(p)
			}
			policies = append(policies, KeepOnChange(p))
		}
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, m)}
		l := must(New(rdb, name, policies, &Options{Instances: 1 + rng.IntN(5)}))(t)
		all = append(all, &modeled{instance{l, rdb}, redis, map[string]*cell{}, map[string]seed{}})
	}
	return all
}

// TestOutagesOfSetsEqualModels has three processes with different numbers take from one
// set, also in outages. In an outage each continues from what Redis last reported to it,
// shares what is left, and bans.
func TestOutagesOfSetsEqualModels(t *testing.T) {
	t.Parallel()
	const each = 200
	rng := redistest.Rand(t)
	met := map[string]int{}
	rounds := max(redistest.Steps(100_000)/each, 1)
	for i := range rounds {
		synctest.Test(t, func(t *testing.T) {
			all := combined(t, bubble(t), rng, fmt.Sprint("o", i))
			ones := make([]instance, len(all))
			for i, p := range all {
				ones[i] = p.instance
			}
			away := false
			for range each {
				p := all[rng.IntN(len(all))]
				switch what := rng.IntN(60); {
				case what == 0 && !away:
					cut(ones)
					away = true
				case what < 3 && away:
					mend(t, ones)
					away = false
				case what == 3:
					must(0, p.SetInstances(1+rng.IntN(30)))(t)
				case what == 4 && !away:
					p.byHand(t, rng)
				}
				last := p.ask(t, randomCost(rng, mostEnforced(p.Limiter)))
				for s := range last.States() {
					switch {
					case s.Banned && last.Degraded:
						met["banned without Redis"]++
					case s.Banned:
						met["banned"]++
					}
				}
				if last.Degraded && last.Allowed {
					met["granted without Redis"]++
				} else if last.Allowed {
					met["granted"]++
				}
				states := slices.Collect(last.States())
				pause := randomPause(rng, &states[rng.IntN(len(states))], time.Millisecond)
				time.Sleep(min(pause, 7*day).Truncate(time.Millisecond))
			}
		})
	}
	for _, what := range []string{"banned without Redis", "banned", "granted without Redis", "granted"} {
		if met[what] < rounds {
			t.Errorf("got %d %s in %d rounds, want more: %v", met[what], what, rounds, met)
		}
	}
}
