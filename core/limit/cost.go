package limit

import (
	"math"

	"github.com/neap-go/neap/core/internal/misuse"
)

func (l *Limiter) checkCost(cost int64) error {
	capacity, policy := l.capacity()
	if cost < 0 || cost > capacity {
		return &CostError{Cost: cost, Capacity: capacity, Policy: policy}
	}
	return nil
}

// capacity returns the capacity of the tightest policy, and its name.
func (l *Limiter) capacity() (capacity int64, policy string) {
	capacity, policy = math.MaxInt64, l.set.Rules[0].Name
	for _, r := range l.set.Rules {
		if !r.Shadow && !r.Once && r.Limit < capacity {
			capacity, policy = r.Limit, r.Name
		}
	}
	return capacity, policy
}

// MaxCost returns the highest cost that the limiter can ever grant: the smallest Limit or
// Burst of its enforced policies. A [PerRequest] policy does not count, because each
// request costs it 1. If no policy is left, MaxCost returns math.MaxInt64. It sends
// nothing, and panics on a nil or zero Limiter.
func (l *Limiter) MaxCost() int64 {
	misuse.Made(l.made(), errLimiter)
	capacity, _ := l.capacity()
	return capacity
}
