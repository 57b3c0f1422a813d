package limit_test

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// feature is a column of the table: what is done to policies, with which options, and what happens
// beside takes, peeks and pauses.
type feature struct {
	name   string
	change func(rng *rand.Rand, s spec) spec
	opts   limit.Options
	acts   []func(*walk)
	// changed: three processes have three versions of the numbers.
	changed bool
	// outages: three processes lose Redis at times.
	outages bool
	walks   float64  // how many times as many walks as another feature; 0 means 1
	without []string // rows that it does not concern
	on      string   // the only driver, if it is not for all
}

var features = []feature{
	{name: "plain"},
	{name: "shadow", change: func(rng *rand.Rand, s spec) spec {
		s.shadow = rng.IntN(2) == 0
		return s
	}},
	{name: "per request", change: func(rng *rand.Rand, s spec) spec {
		s.once = rng.IntN(2) == 0
		return s
	}},
	{name: "ban", acts: []func(*walk){(*walk).ban, (*walk).unban, (*walk).banned, (*walk).reset}, change: func(rng *rand.Rand, s spec) spec {
		s.shadow = rng.IntN(4) == 0
		if rng.IntN(4) > 0 {
			s.ban = randomBan(rng)
		}
		return s
	}},
	{name: "hold", opts: limit.Options{Holds: true}, acts: []func(*walk){(*walk).hold, (*walk).hold, (*walk).ban, (*walk).reset}, change: func(rng *rand.Rand, s spec) spec {
		s.shadow = rng.IntN(4) == 0
		if rng.IntN(3) == 0 {
			s.ban = randomBan(rng)
		}
		return s
	}},
	{name: "refund", acts: []func(*walk){(*walk).refund, (*walk).refund, (*walk).refund, (*walk).reset}, change: lasting},
	{name: "settle", acts: []func(*walk){(*walk).settle, (*walk).settle, (*walk).settle, (*walk).refund}, change: settled},
	{
		name: "remembered", opts: limit.Options{RememberDenials: time.Minute}, change: lasting,
		acts: []func(*walk){(*walk).refund, (*walk).refund, (*walk).reset},
	},
	{name: "broken", acts: []func(*walk){(*walk).spoil}},
	{name: "clock set back", opts: limit.Options{Holds: true}, acts: []func(*walk){(*walk).setBack, (*walk).setBack, (*walk).hold}, change: func(rng *rand.Rand, s spec) spec {
		if rng.IntN(3) == 0 {
			s.ban = randomBan(rng)
		}
		return s
	}},
	{name: "together", walks: 2, acts: []func(*walk){(*walk).together, (*walk).together, (*walk).spoiledTogether, (*walk).ban}, change: func(rng *rand.Rand, s spec) spec {
		s.shadow = rng.IntN(4) == 0
		if rng.IntN(3) == 0 {
			s.ban = randomBan(rng)
		}
		return s
	}},
	{name: "waiting", acts: []func(*walk){(*walk).wait}},
	{name: "instances", acts: []func(*walk){(*walk).scale, (*walk).refund, (*walk).settle, (*walk).reset}, change: func(rng *rand.Rand, s spec) spec {
		return shared(settled(rng, s))
	}},
	{name: "outages", walks: 5, on: "miniredis", outages: true, opts: limit.Options{Holds: true}, acts: append([]func(*walk){(*walk).hold}, outages...), change: func(rng *rand.Rand, s spec) spec {
		return banned(rng, shared(s))
	}},
	{
		name: "outages of the changed", walks: 5, on: "miniredis", outages: true, changed: true, acts: outages, without: []string{"bucket", "fast"},
		change: func(rng *rand.Rand, s spec) spec { return banned(rng, kept(rng, shared(s))) },
	},
	{name: "kept", without: []string{"bucket", "fast"}, acts: []func(*walk){(*walk).settle, (*walk).refund}, change: kept},
	{name: "lease", walks: 0.25, without: []string{"bucket", "fast", "sliding", "log", "kept"}, acts: []func(*walk){(*walk).crash, (*walk).crash, (*walk).settle, (*walk).refund, (*walk).reset}, change: onLease},
	{name: "changed", changed: true, without: []string{"bucket", "fast"}, acts: []func(*walk){(*walk).settle, (*walk).refund, (*walk).reset}, change: kept},
	{name: "overridden", changed: true, opts: limit.Options{Overrides: true}, without: []string{"bucket", "fast"}, acts: []func(*walk){(*walk).override, (*walk).override, (*walk).settle, (*walk).refund, (*walk).reset}, change: kept},
	{
		name: "all", opts: limit.Options{RememberDenials: time.Second, Holds: true},
		acts: []func(*walk){(*walk).settle, (*walk).refund, (*walk).ban, (*walk).unban, (*walk).hold, (*walk).reset},
		change: func(rng *rand.Rand, s spec) spec {
			s = kept(rng, s)
			s.shadow = rng.IntN(4) == 0
			s.once = s.once || rng.IntN(4) == 0
			if rng.IntN(3) == 0 {
				s.ban = randomBan(rng)
			}
			return s
		},
	},
}

var outages = []func(*walk){(*walk).cut, (*walk).mend, (*walk).scale, (*walk).ban, (*walk).unban, (*walk).reset}

// banned gives some policies a ban, and makes some of them shadows.
func banned(rng *rand.Rand, s spec) spec {
	s.shadow = rng.IntN(6) == 0
	if rng.IntN(2) == 0 {
		s.ban = randomBan(rng)
	}
	return s
}

// lasting makes windows long enough to tell two of them apart, however roughly a clock is known.
func lasting(_ *rand.Rand, s spec) spec {
	if _, is := s.base.(limit.SlidingLog); is { // it knows each of its permits
		return s
	}
	if window := reflect.ValueOf(s.base).FieldByName("Window"); window.IsValid() {
		s.base = limit.Set(s.base, max(time.Duration(window.Int()), 200*time.Millisecond), "Window")
	}
	return s
}

// shared makes a bucket fill within some years, so that no time to fill that many processes share
// is too long to tell.
func shared(s spec) spec {
	if b, is := s.base.(limit.TokenBucket); is && s.window() > 1000*day {
		b.Rate, b.Per, b.Burst, b.MaxDebt = 1, 1000*day, 1, 0
		s.base = b
	}
	return s
}

// settled is lasting for what can be settled: a log counts requests.
func settled(rng *rand.Rand, s spec) spec {
	if _, is := s.base.(limit.SlidingLog); is {
		s.once = true
	}
	return lasting(rng, s)
}

// kept is settled for a policy that keeps what was counted. A bucket is another kind then.
func kept(rng *rand.Rand, s spec) spec {
	if _, is := s.base.(limit.TokenBucket); !is {
		s.kept = true
	}
	return settled(rng, s)
}

// onLease is settled for windows whose estimates have a lease. Others have none.
func onLease(rng *rand.Rand, s spec) spec {
	s = settled(rng, s)
	switch p := s.base.(type) {
	case limit.FixedWindow:
		s.lease = min(max(p.Window/time.Duration(3+rng.IntN(20)), 20*time.Millisecond), day)
	case limit.CalendarWindow:
		s.lease = map[limit.Period]time.Duration{limit.Hour: 10 * time.Minute, limit.Day: time.Hour}[p.Every]
		s.lease = cmp.Or(s.lease, day)
	}
	s.lease = s.lease.Truncate(time.Millisecond)
	return s
}

// randomBan has spans of all sizes.
func randomBan(rng *rand.Rand) *limit.Ban {
	span := func() time.Duration {
		return time.Duration(1+rng.Int64N([]int64{5, 2000, 100_000, 90_000_000}[rng.IntN(4)])) * time.Millisecond
	}
	b := limit.Ban{After: 1 + rng.Int64N(4), Within: span(), For: span()}
	switch rng.IntN(4) {
	case 0:
		b.Max = b.For
	case 1, 2:
		b.Max = b.For*time.Duration(2+rng.IntN(10)) + span()
	}
	return &b
}
