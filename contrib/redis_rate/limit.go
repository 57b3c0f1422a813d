package redis_rate

import (
	"fmt"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// Limit admits Rate permits in each Period on average, and Burst at once. The zero Limit
// is an error to each call.
type Limit struct {
	Rate   int
	Burst  int
	Period time.Duration
}

// PerSecond is a Limit of so many permits in a second, all of them at once if they are there.
func PerSecond(rate int) Limit { return per(rate, time.Second) }

// PerMinute is PerSecond for a minute.
func PerMinute(rate int) Limit { return per(rate, time.Minute) }

// PerHour is PerSecond for an hour.
func PerHour(rate int) Limit { return per(rate, time.Hour) }

func per(rate int, period time.Duration) Limit {
	return Limit{Rate: rate, Burst: rate, Period: period}
}

// IsZero reports whether nothing in the Limit is set.
func (l Limit) IsZero() bool { return l == Limit{} }

// String is the Limit in words: 10 req/s (burst 10).
func (l Limit) String() string {
	return fmt.Sprintf("%d req/%s (burst %d)", l.Rate, unitOf(l.Period), l.Burst)
}

func unitOf(period time.Duration) string {
	switch period {
	case time.Second:
		return "s"
	case time.Minute:
		return "m"
	case time.Hour:
		return "h"
	}
	return period.String()
}

// check refuses numbers that mean nothing.
func check(rate Limit, n int) error {
	switch {
	case n < 0:
		return fmt.Errorf("redis_rate: n is %d: it must be at least 0; nothing can be given back", n)
	case rate.Rate < 1:
		return fmt.Errorf("redis_rate: Limit.Rate is %d: it must be at least 1; to admit nothing, use a Burst of 0", rate.Rate)
	case rate.Period < time.Millisecond:
		return fmt.Errorf("redis_rate: Limit.Period is %v: it must be at least a millisecond (a bare number is nanoseconds: write 1 * time.Second)", rate.Period)
	}
	return nil
}

// policyOf keeps the state of a key when its Limit changes, so that Reset finds it without one.
func policyOf(rate Limit) limit.Policy {
	return limit.KeepOnChange(limit.TokenBucket{
		Name: policy, Rate: int64(rate.Rate), Per: rate.Period, Burst: int64(rate.Burst),
	})
}
