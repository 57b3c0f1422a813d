package limit_test

import (
	"math/rand/v2"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// kind is a row of the table.
type kind struct {
	name string
	// notable are tried before any random ones.
	notable []limit.Policy
	random  func(rng *rand.Rand, most int64, length time.Duration) limit.Policy
	// step is the smallest step of its clock.
	step time.Duration
	kept bool
	// drains: what is given back late depends on how exactly a clock is known.
	drains bool
}

var kinds = []kind{
	{
		name: "bucket", step: time.Millisecond, drains: true,
		notable: []limit.Policy{
			limit.TokenBucket{Rate: 3, Per: time.Second},
			limit.TokenBucket{Rate: 7, Per: time.Minute, Burst: 11},
			limit.TokenBucket{Rate: 1, Per: day, Burst: 2},
			limit.TokenBucket{Rate: 1000, Per: time.Second, Burst: 5},
			limit.TokenBucket{Rate: 997, Per: time.Second, MaxDebt: 3},
			// The largest numbers that are counted exactly:
			limit.TokenBucket{Rate: 999, Per: time.Second, Burst: 9_007_199_254_730},
			limit.TokenBucket{Rate: 10_000_019, Per: 30 * day},
			limit.TokenBucket{Rate: 3, Per: 30 * day, Burst: 3_000},
			limit.TokenBucket{Rate: 1, Per: 290 * 365 * day},
		},
		random: func(rng *rand.Rand, most int64, length time.Duration) limit.Policy {
			rate := 1 + rng.Int64N(min(max(length.Milliseconds(), 1), 5000))
			return limit.TokenBucket{Rate: rate, Per: length, Burst: most, MaxDebt: debt(rng)}
		},
	},
	{
		name: "fast bucket", step: time.Microsecond, drains: true,
		notable: []limit.Policy{
			limit.TokenBucket{Rate: 1_000_000, Per: time.Second},
			limit.TokenBucket{Rate: 5000, Per: time.Second, Burst: 3, MaxDebt: 2},
			limit.TokenBucket{Rate: 7777, Per: time.Second},
			limit.TokenBucket{Rate: 7, Per: time.Millisecond, Burst: 1},
			limit.TokenBucket{Rate: 999_999_937, Per: time.Second, Burst: 9_000_000},
		},
		random: func(rng *rand.Rand, most int64, _ time.Duration) limit.Policy {
			return limit.TokenBucket{Rate: 1001 + rng.Int64N(2_000_000), Per: time.Second, Burst: most, MaxDebt: debt(rng)}
		},
	},
	{
		name: "fixed window", step: time.Millisecond,
		notable: []limit.Policy{
			limit.FixedWindow{Limit: 3, Window: time.Second},
			limit.FixedWindow{Limit: 1, Window: day},
			limit.FixedWindow{Limit: 1_000_000, Window: time.Second, MaxDebt: 5},
			limit.FixedWindow{Limit: 10_000_000, Window: 30 * day}, // its reply does not fit into one number
			limit.FixedWindow{Limit: 1<<52 - 1, Window: time.Hour},
		},
		random: func(rng *rand.Rand, most int64, length time.Duration) limit.Policy {
			return limit.FixedWindow{Limit: most, Window: length, MaxDebt: debt(rng)}
		},
	},
	{
		name: "sliding window", step: time.Millisecond,
		notable: []limit.Policy{
			limit.SlidingWindow{Limit: 3, Window: time.Second},
			limit.SlidingWindow{Limit: 1, Window: day},
			limit.SlidingWindow{Limit: 1_000_000, Window: time.Second},
			limit.SlidingWindow{Limit: 5_000_000, Window: time.Hour / 2}, // its reply does not fit into one number
			limit.SlidingWindow{Limit: 94_906_264, Window: 23 * time.Millisecond},
		},
		random: func(_ *rand.Rand, most int64, length time.Duration) limit.Policy {
			return limit.SlidingWindow{Limit: most, Window: length}
		},
	},
	{
		name: "sliding log", step: time.Microsecond,
		notable: []limit.Policy{
			limit.SlidingLog{Limit: 3, Window: time.Second},
			limit.SlidingLog{Limit: 1, Window: day},
			limit.SlidingLog{Limit: 7, Window: time.Millisecond + 3*time.Microsecond},
			limit.SlidingLog{Limit: 90, Window: 10_000 * day}, // its reply does not fit into one number
			limit.SlidingLog{Limit: 10_001, Window: 34 * 365 * day},
		},
		random: func(rng *rand.Rand, most int64, length time.Duration) limit.Policy {
			return limit.SlidingLog{Limit: 1 + most%80, Window: length + time.Duration(rng.IntN(1000))*time.Microsecond}
		},
	},
	{
		name: "calendar window", step: time.Millisecond,
		notable: []limit.Policy{
			limit.CalendarWindow{Limit: 3, Every: limit.Hour, Location: zone("Australia/Lord_Howe")},
			limit.CalendarWindow{Limit: 3, Every: limit.Day, Location: zone("Africa/Cairo"), MaxDebt: 2},
			limit.CalendarWindow{Limit: 3, Every: limit.Week, Location: zone("America/New_York")},
			limit.CalendarWindow{Limit: 1 << 51, Every: limit.Month}, // its reply does not fit into one number
		},
		random: func(rng *rand.Rand, most int64, _ time.Duration) limit.Policy {
			return limit.CalendarWindow{
				Limit: most, Every: limit.Hour + limit.Period(rng.IntN(4)), MaxDebt: debt(rng),
				Location: zone([]string{"UTC", "Asia/Shanghai", "Europe/Berlin", "America/Havana"}[rng.IntN(4)]),
			}
		},
	},
	{
		name: "kept bucket", step: time.Microsecond, drains: true, kept: true,
		notable: []limit.Policy{
			limit.TokenBucket{Rate: 10, Per: day, Burst: 260_000},
			limit.TokenBucket{Rate: 1, Per: day, Burst: 2},
			limit.TokenBucket{Rate: 1_000_000, Per: time.Second, MaxDebt: 7},
			limit.TokenBucket{Rate: 1_000_000_000, Per: time.Millisecond, Burst: 7},
		},
		random: func(rng *rand.Rand, most int64, length time.Duration) limit.Policy {
			rate := 1 + rng.Int64N([]int64{10, 1000, 2_000_000}[rng.IntN(3)])
			return limit.TokenBucket{Rate: rate, Per: length, Burst: 1 + most%5000, MaxDebt: debt(rng) % 100}
		},
	},
}

const day = 24 * time.Hour

func zone(name string) *time.Location {
	in, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return in
}

// debt is a MaxDebt, often none.
func debt(rng *rand.Rand) int64 {
	return []int64{0, 0, rng.Int64N(20), rng.Int64N(2000)}[rng.IntN(4)]
}

// of returns the i-th policy of the kind: first the notable ones.
func (k *kind) of(rng *rand.Rand, i int) spec {
	s := spec{kept: k.kept}
	if i < len(k.notable) {
		s.base = k.notable[i]
	} else {
		span := func(unit time.Duration, most int64) time.Duration {
			return time.Duration(1+rng.Int64N(most)) * unit
		}
		length := []time.Duration{
			span(time.Millisecond, 2000), span(time.Second, 100), time.Minute, time.Hour, span(time.Hour, 50),
		}[rng.IntN(5)]
		s.base = k.random(rng, 1+rng.Int64N([]int64{1, 10, 100, 100_000}[rng.IntN(4)]), length)
	}
	return s.named(s.base.PolicyName())
}

// fields are those that policies of all kinds have.
type fields struct {
	name   *string
	most   *int64
	window *time.Duration // nil if there is none
}

// edit returns the policy with its fields changed.
func (s spec) edit(change func(fields)) spec {
	switch p := s.base.(type) {
	case limit.TokenBucket:
		change(fields{&p.Name, &p.Burst, nil})
		s.base = p
	case limit.FixedWindow:
		change(fields{&p.Name, &p.Limit, &p.Window})
		s.base = p
	case limit.SlidingWindow:
		change(fields{&p.Name, &p.Limit, &p.Window})
		s.base = p
	case limit.SlidingLog:
		change(fields{&p.Name, &p.Limit, &p.Window})
		s.base = p
	case limit.CalendarWindow:
		change(fields{&p.Name, &p.Limit, nil})
		s.base = p
	}
	return s
}

// named returns the policy with that name.
func (s spec) named(name string) spec { return s.edit(func(f fields) { *f.name = name }) }

// scaled returns the policy with another limit, and so many times the rate.
func (s spec) scaled(most, times int64) spec {
	s = s.edit(func(f fields) { *f.most = most })
	if faster, is := s.base.(limit.TokenBucket); is {
		faster.Rate *= times
		if _, err := limit.NewLocal("n", []limit.Policy{limit.KeepOnChange(faster)}, nil); err == nil {
			s.base = faster
		}
	}
	return s
}

// isBrief reports whether it has windows that are not longer than most.
func (s spec) isBrief(most time.Duration) bool {
	brief := false
	s.edit(func(f fields) { brief = f.window != nil && *f.window <= most })
	return brief
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
