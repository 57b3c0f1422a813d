package redis_rate

import (
	"math"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// Result is what a call was answered.
type Result struct {
	// Limit is the Limit of the call.
	Limit Limit

	// Allowed is how many permits were granted; 0 if the call was denied.
	Allowed int

	// Remaining is how many permits could be taken right now, after this call.
	Remaining int

	// RetryAfter is how long until the same call would be granted; -1 if it was.
	RetryAfter time.Duration

	// ResetAfter is how long until nothing is taken any more, and Remaining is the Burst.
	ResetAfter time.Duration
}

// never is the RetryAfter of what is not denied.
const never = -1

func granted(rate Limit, d *limit.Decision, n int) *Result {
	return &Result{Limit: rate, Allowed: n, Remaining: int(d.Remaining), RetryAfter: never, ResetAfter: d.ResetAfter}
}

func denied(rate Limit, d *limit.Decision, retryAfter time.Duration) *Result {
	return &Result{Limit: rate, Remaining: int(d.Remaining), RetryAfter: retryAfter, ResetAfter: d.ResetAfter}
}

// barred is what a Limit answers whose Burst admits nothing.
func barred(rate Limit, n int) *Result {
	r := &Result{Limit: rate, RetryAfter: never}
	if n > rate.Burst {
		r.RetryAfter = timeOf(rate, float64(n)-float64(rate.Burst), 0)
	}
	return r
}

// timeOf is how long so many permits take to come back, and some more time.
func timeOf(rate Limit, permits float64, more time.Duration) time.Duration {
	t := math.Ceil(permits*float64(rate.Period)/float64(rate.Rate)) + float64(more)
	if t >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(t)
}

// nextAfter is how long until one more permit is there.
func nextAfter(d *limit.Decision) (next time.Duration) {
	for s := range d.States() {
		next = max(next, s.NextAfter)
	}
	return next
}
