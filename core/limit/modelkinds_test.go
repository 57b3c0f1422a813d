package limit_test

import (
	"fmt"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// algorithm is one kind of policy, with what one subject has taken. Times are microseconds since
// 1970.
type algorithm interface {
	// become takes over the numbers of a policy of its kind.
	become(p limit.Policy)
	// tick is the smallest step of its clock.
	tick() int64
	limit() int64
	// window is the longest time in which it becomes whole again, or 0 for a month.
	window(now int64) time.Duration

	// free is how many permits can be taken at that time if no others are taken until then. It is
	// below 0 if more are in use than the limit.
	free(now int64) int64
	// idle reports whether nothing is in use.
	idle(now int64) bool

	// take takes permits that are free.
	take(now, n int64) mark
	// giveBack gives back n permits of what was taken at a mark, as far as they are still in use.
	giveBack(now int64, of mark, n int64) (given bool)
	// owe charges permits that were used already, and returns how many it cannot hold.
	owe(now, n int64) (forgiven int64)

	clone() algorithm
}

// mark is where a decision took its permits; nil is nowhere.
type mark any

func newAlgorithm(s spec) algorithm {
	if s.lease > 0 {
		return newLeased(s)
	}
	switch p := s.base.(type) {
	case limit.TokenBucket:
		if s.kept {
			return new(keptBucket)
		}
		return new(bucket)
	case limit.FixedWindow:
		return new(window)
	case limit.CalendarWindow:
		return new(calendar)
	case limit.SlidingWindow:
		return new(sliding)
	case limit.SlidingLog:
		return new(slidingLog)
	default:
		panic(fmt.Sprintf("there is no model of a %T", p))
	}
}

const millisecond = 1000

// floorDiv divides by a number above 0 and rounds down.
func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}
