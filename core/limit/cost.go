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
	capacity, policy = math.MaxInt64, l.rules[0].id().name
	for _, r := range l.rules {
		if id := r.id(); !id.shadow && !id.once && id.limit < capacity {
			capacity, policy = id.limit, id.name
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

// wanted is what a caller asks for: how many permits, for how many requests.
type wanted struct{ permits, requests int64 }

// aRequest is what one request of that cost asks for.
func aRequest(cost int64) wanted { return wanted{cost, min(cost, 1)} }

func (w wanted) plus(other wanted) wanted {
	return wanted{w.permits + other.permits, w.requests + other.requests}
}

// of returns what a policy counts for w.
func (w wanted) of(r rule) int64 {
	if r.id().once {
		return w.requests
	}
	return w.permits
}
