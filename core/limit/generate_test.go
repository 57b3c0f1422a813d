package limit

import (
	"math"
	"math/rand/v2"
	"time"
)

// kind is the kind of a generated policy; fast is a bucket on TIME.
type kind string

const (
	kindBucket  kind = "bucket"
	kindFast    kind = "fast bucket"
	kindWindow  kind = "fixed window"
	kindSliding kind = "sliding window"
	kindLog     kind = "sliding log"

	kindCalendar kind = "calendar window"
	kindKept     kind = "kept bucket"
)

var kinds = []kind{kindBucket, kindFast, kindWindow, kindSliding, kindLog, kindCalendar, kindKept}

// notable are the policies that are tried before any random one.
var notable = map[kind][]Policy{
	kindBucket: {
		TokenBucket{Rate: 3, Per: time.Second},
		TokenBucket{Rate: 7, Per: time.Minute, Burst: 11},
		TokenBucket{Rate: 1, Per: 24 * time.Hour, Burst: 2},
		TokenBucket{Rate: 1000, Per: time.Second, Burst: 5},
		TokenBucket{Rate: 997, Per: time.Second},
	},
	kindFast: {
		TokenBucket{Rate: 1_000_000, Per: time.Second},
		TokenBucket{Rate: 5000, Per: time.Second, Burst: 3},
		TokenBucket{Rate: 7777, Per: time.Second},
		TokenBucket{Rate: 7, Per: time.Millisecond, Burst: 1},
	},
	kindWindow: {
		FixedWindow{Limit: 3, Window: time.Second},
		FixedWindow{Limit: 1, Window: 24 * time.Hour},
		FixedWindow{Limit: 1_000_000, Window: time.Second},
		FixedWindow{Limit: 10_000_000, Window: 30 * 24 * time.Hour}, // beyond one number
	},
	kindSliding: {
		SlidingWindow{Limit: 3, Window: time.Second},
		SlidingWindow{Limit: 1, Window: 24 * time.Hour},
		SlidingWindow{Limit: 1_000_000, Window: time.Second},
		SlidingWindow{Limit: 5_000_000, Window: time.Hour / 2}, // beyond one number
	},
	kindLog: {
		SlidingLog{Limit: 3, Window: time.Second},
		SlidingLog{Limit: 1, Window: 24 * time.Hour},
		SlidingLog{Limit: 7, Window: time.Millisecond + 3*time.Microsecond},
		SlidingLog{Limit: 90, Window: 100_000 * 24 * time.Hour / 10}, // 27 years
	},
	kindCalendar: {
		CalendarWindow{Limit: 3, Every: Hour, Location: mustZone("Australia/Lord_Howe")},
		CalendarWindow{Limit: 3, Every: Day, Location: mustZone("Africa/Cairo")},
		CalendarWindow{Limit: 3, Every: Week, Location: mustZone("America/New_York")},
		CalendarWindow{Limit: 1 << 51, Every: Month},
	},
	kindKept: {
		KeepOnChange(TokenBucket{Name: "kept", Rate: 10, Per: 24 * time.Hour, Burst: 260_000}),
		KeepOnChange(TokenBucket{Name: "kept", Rate: 1, Per: 24 * time.Hour, Burst: 2}),
		KeepOnChange(TokenBucket{Name: "kept", Rate: 1_000_000, Per: time.Second}),
		KeepOnChange(TokenBucket{Name: "kept", Rate: 1_000_000_000, Per: time.Millisecond, Burst: 7}),
	},
}

func mustZone(name string) *time.Location {
	in, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return in
}

var zones = []*time.Location{nil, mustZone("Asia/Shanghai"), mustZone("Europe/Berlin"), mustZone("America/Havana")}

func randomPolicy(rng *rand.Rand, k kind) Policy {
	span := func(unit time.Duration, most int64) time.Duration {
		return time.Duration(1+rng.Int64N(most)) * unit
	}
	length := []time.Duration{
		span(time.Millisecond, 2000), span(time.Second, 100), time.Minute, time.Hour, span(time.Hour, 50),
	}[rng.IntN(5)]
	limit := 1 + rng.Int64N([]int64{1, 10, 100, 100_000}[rng.IntN(4)])
	switch k {
	case kindBucket:
		rate := 1 + rng.Int64N(min(max(length.Milliseconds(), 1), 5000))
		return TokenBucket{Rate: rate, Per: length, Burst: limit}
	case kindFast:
		return TokenBucket{Rate: 1001 + rng.Int64N(2_000_000), Per: time.Second, Burst: limit}
	case kindWindow:
		return FixedWindow{Limit: limit, Window: length}
	case kindSliding:
		return SlidingWindow{Limit: limit, Window: length}
	case kindCalendar:
		return CalendarWindow{Limit: limit, Every: Period(1 + rng.IntN(4)), Location: zones[rng.IntN(len(zones))]}
	case kindKept:
		p := TokenBucket{Rate: 1 + rng.Int64N([]int64{10, 1000, 2_000_000}[rng.IntN(3)]), Per: length, Burst: 1 + limit%5000}
		p.Name = p.signature()
		return KeepOnChange(p)
	default:
		return SlidingLog{Limit: 1 + limit%80, Window: length + time.Duration(rng.IntN(1000))*time.Microsecond}
	}
}

// grain is the smallest step of a rule's clock.
func grain(r rule) time.Duration {
	switch r := r.(type) {
	case *bucket:
		return r.tick
	case *slidingLog, *keptBucket:
		return time.Microsecond
	default:
		return time.Millisecond
	}
}

// randomCost prefers costs at the limits of what a rule can grant.
func randomCost(rng *rand.Rand, capacity int64) int64 {
	switch rng.IntN(10) {
	case 0:
		return 0
	case 1:
		return capacity
	case 2, 3:
		return 1 + rng.Int64N(capacity)
	default:
		return 1
	}
}

// randomPause prefers the moments at which a decision changes.
func randomPause(rng *rand.Rand, last *State, step time.Duration) time.Duration {
	var pause time.Duration
	window := last.Window
	if window == 0 { // a month
		window = 30 * 24 * time.Hour
	}
	switch rng.IntN(10) {
	case 0, 1, 2, 3:
		return 0
	case 4:
		pause = last.RetryAfter - step
	case 5:
		pause = last.RetryAfter
	case 6:
		pause = last.NextAfter
	case 7:
		pause = last.ResetAfter - time.Duration(rng.IntN(2))*step
	case 8:
		pause = time.Duration(rng.Int64N(int64(window)/10 + 1))
	case 9:
		pause = time.Duration(rng.Int64N(2 * int64(min(window, math.MaxInt64/2))))
	}
	return max(pause, 0) / step * step
}
