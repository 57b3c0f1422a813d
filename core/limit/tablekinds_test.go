package limit

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/neap-go/neap/lua"
)

// Kind is a row of the table.
type Kind struct {
	// One is of OneOfEach.
	One Policy
	// Notable are tried before any random ones.
	Notable []Policy
	Random  func(rng *rand.Rand, most int64, length time.Duration) Policy
	// Step is the smallest step of its clock.
	Step time.Duration
	Kept bool
	// Drains: what is given back late depends on how exactly a clock is known.
	Drains bool
}

// Kinds are by the names of lua.Kinds.
var Kinds = map[string]*Kind{
	"bucket": {
		One:  TokenBucket{Name: "bucket", Rate: 10, Per: time.Hour, Burst: 5},
		Step: time.Millisecond, Drains: true,
		Notable: []Policy{
			TokenBucket{Rate: 3, Per: time.Second},
			TokenBucket{Rate: 7, Per: time.Minute, Burst: 11},
			TokenBucket{Rate: 1, Per: day, Burst: 2},
			TokenBucket{Rate: 1000, Per: time.Second, Burst: 5},
			TokenBucket{Rate: 997, Per: time.Second, MaxDebt: 3},
			// The largest numbers that are counted exactly:
			TokenBucket{Rate: 999, Per: time.Second, Burst: 9_007_199_254_730},
			TokenBucket{Rate: 10_000_019, Per: 30 * day},
			TokenBucket{Rate: 3, Per: 30 * day, Burst: 3_000},
			TokenBucket{Rate: 1, Per: 290 * 365 * day},
		},
		Random: func(rng *rand.Rand, most int64, length time.Duration) Policy {
			rate := 1 + rng.Int64N(min(max(length.Milliseconds(), 1), 5000))
			return TokenBucket{Rate: rate, Per: length, Burst: most, MaxDebt: randomDebt(rng)}
		},
	},
	"fast": {
		One:  TokenBucket{Name: "fast", Rate: 5000, Per: time.Second, Burst: 1_000_000},
		Step: time.Microsecond, Drains: true,
		Notable: []Policy{
			TokenBucket{Rate: 1_000_000, Per: time.Second},
			TokenBucket{Rate: 5000, Per: time.Second, Burst: 3, MaxDebt: 2},
			TokenBucket{Rate: 7777, Per: time.Second},
			TokenBucket{Rate: 7, Per: time.Millisecond, Burst: 1},
			TokenBucket{Rate: 999_999_937, Per: time.Second, Burst: 9_000_000},
		},
		Random: func(rng *rand.Rand, most int64, _ time.Duration) Policy {
			return TokenBucket{Rate: 1001 + rng.Int64N(2_000_000), Per: time.Second, Burst: most, MaxDebt: randomDebt(rng)}
		},
	},
	"window": {
		One:  FixedWindow{Name: "window", Limit: 7, Window: time.Hour},
		Step: time.Millisecond,
		Notable: []Policy{
			FixedWindow{Limit: 3, Window: time.Second},
			FixedWindow{Limit: 1, Window: day},
			FixedWindow{Limit: 1_000_000, Window: time.Second, MaxDebt: 5},
			FixedWindow{Limit: 10_000_000, Window: 30 * day}, // its reply does not fit into one number
			FixedWindow{Limit: 1<<52 - 1, Window: time.Hour},
		},
		Random: func(rng *rand.Rand, most int64, length time.Duration) Policy {
			return FixedWindow{Limit: most, Window: length, MaxDebt: randomDebt(rng)}
		},
	},
	"sliding": {
		One:  SlidingWindow{Name: "sliding", Limit: 9, Window: time.Hour},
		Step: time.Millisecond,
		Notable: []Policy{
			SlidingWindow{Limit: 3, Window: time.Second},
			SlidingWindow{Limit: 1, Window: day},
			SlidingWindow{Limit: 1_000_000, Window: time.Second},
			SlidingWindow{Limit: 5_000_000, Window: time.Hour / 2}, // its reply does not fit into one number
			SlidingWindow{Limit: 94_906_264, Window: 23 * time.Millisecond},
		},
		Random: func(_ *rand.Rand, most int64, length time.Duration) Policy {
			return SlidingWindow{Limit: most, Window: length}
		},
	},
	"log": {
		One:  SlidingLog{Name: "log", Limit: 11, Window: time.Hour},
		Step: time.Microsecond,
		Notable: []Policy{
			SlidingLog{Limit: 3, Window: time.Second},
			SlidingLog{Limit: 1, Window: day},
			SlidingLog{Limit: 7, Window: time.Millisecond + 3*time.Microsecond},
			SlidingLog{Limit: 90, Window: 10_000 * day}, // its reply does not fit into one number
			SlidingLog{Limit: 10_001, Window: 34 * 365 * day},
		},
		Random: func(rng *rand.Rand, most int64, length time.Duration) Policy {
			return SlidingLog{Limit: 1 + most%80, Window: length + time.Duration(rng.IntN(1000))*time.Microsecond}
		},
	},
	"calendar": {
		One:  CalendarWindow{Name: "calendar", Limit: 15, Every: Month, Location: midMonth()},
		Step: time.Millisecond,
		Notable: []Policy{
			CalendarWindow{Limit: 3, Every: Hour, Location: Zone("Australia/Lord_Howe")},
			CalendarWindow{Limit: 3, Every: Day, Location: Zone("Africa/Cairo"), MaxDebt: 2},
			CalendarWindow{Limit: 3, Every: Week, Location: Zone("America/New_York")},
			CalendarWindow{Limit: 1 << 51, Every: Month}, // its reply does not fit into one number
		},
		Random: func(rng *rand.Rand, most int64, _ time.Duration) Policy {
			return CalendarWindow{
				Limit: most, Every: Hour + Period(rng.IntN(4)), MaxDebt: randomDebt(rng),
				Location: zones[rng.IntN(len(zones))],
			}
		},
	},
	"kept": {
		One:  KeepOnChange(TokenBucket{Name: "kept", Rate: 10, Per: time.Hour, Burst: 13}),
		Step: time.Microsecond, Drains: true, Kept: true,
		Notable: []Policy{
			TokenBucket{Rate: 10, Per: day, Burst: 260_000},
			TokenBucket{Rate: 1, Per: day, Burst: 2},
			TokenBucket{Rate: 1_000_000, Per: time.Second, MaxDebt: 7},
			TokenBucket{Rate: 1_000_000_000, Per: time.Millisecond, Burst: 7},
		},
		Random: func(rng *rand.Rand, most int64, length time.Duration) Policy {
			rate := 1 + rng.Int64N([]int64{10, 1000, 2_000_000}[rng.IntN(3)])
			return TokenBucket{Rate: rate, Per: length, Burst: 1 + most%5000, MaxDebt: randomDebt(rng) % 100}
		},
	},
}

const day = 24 * time.Hour

// Zone loads the zone of that name.
func Zone(name string) *time.Location {
	in, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return in
}

// zones are those of random policies. A plus and an underscore are written alike in a key.
var zones = []*time.Location{
	nil, Zone("Asia/Shanghai"), Zone("Europe/Berlin"), Zone("America/Havana"), Zone("Etc/GMT+5"), Zone("Etc/GMT-5"),
	Zone("America/Port-au-Prince"), Zone("America/Argentina/Buenos_Aires"),
}

// randomDebt is a MaxDebt, often none.
func randomDebt(rng *rand.Rand) int64 {
	return []int64{0, 0, rng.Int64N(20), rng.Int64N(2000)}[rng.IntN(4)]
}

// Policy returns the i-th policy of the kind: first the notable ones. It has a name.
func (k *Kind) Policy(rng *rand.Rand, i int) (p Policy) {
	if i < len(k.Notable) {
		p = k.Notable[i]
	} else {
		span := func(unit time.Duration, most int64) time.Duration {
			return time.Duration(1+rng.Int64N(most)) * unit
		}
		length := []time.Duration{
			span(time.Millisecond, 2000), span(time.Second, 100), time.Minute, time.Hour, span(time.Hour, 50),
		}[rng.IntN(5)]
		p = k.Random(rng, 1+rng.Int64N([]int64{1, 10, 100, 100_000}[rng.IntN(4)]), length)
	}
	return Set(p, p.PolicyName(), "Name")
}

// midMonth is a place where no month ends while a test runs: UTC, but for an hour a month.
func midMonth() *time.Location {
	if now := time.Now().UTC(); now.Add(time.Hour).Month() != now.Month() {
		return Zone("Pacific/Honolulu")
	}
	return nil
}

// OneOfEach is a policy of each kind. Steady are those that free nothing while a test runs.
// WithBans are each with a ban.
var OneOfEach, Steady, WithBans = func() (all, steady, bans []Policy) {
	for i, kind := range lua.Kinds {
		p := Kinds[kind].One
		all, bans = append(all, p), append(bans, WithBan(p, Ban{After: 1 + int64(i)%2, Within: time.Hour, For: time.Hour, Max: 3 * time.Hour}))
		if kind != "fast" {
			steady = append(steady, p)
		}
	}
	return all, steady, bans
}()

// Set returns the policy with another value of a field: of the first of these that its type has.
func Set(p Policy, value any, fields ...string) Policy {
	if of, is := p.(termed); is {
		of.Policy = Set(of.Policy, value, fields...)
		return of
	}
	v := reflect.New(reflect.TypeOf(p)).Elem()
	v.Set(reflect.ValueOf(p))
	at := slices.IndexFunc(fields, func(field string) bool { return v.FieldByName(field).IsValid() })
	if at < 0 {
		panic(fmt.Sprintf("a %T has none of the fields %q", p, fields))
	}
	v.FieldByName(fields[at]).Set(reflect.ValueOf(value))
	return v.Interface().(Policy)
}
