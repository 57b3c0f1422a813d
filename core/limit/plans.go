package limit

import (
	"reflect"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// mostPlans is how many limiters that With made are kept for the next With.
const mostPlans = 16_384

// plans are the limiters that With made, by the values of their policies.
type plans struct {
	mu   sync.Mutex
	made *simplelru.LRU[plan, *Limiter]
}

// plan is the values of policies, as a key. Those behind the first few are another plan.
type plan struct {
	few  [fewRules]Policy
	rest any
}

func newPlans(most int) *plans {
	made, err := simplelru.NewLRU[plan, *Limiter](most, nil)
	if err != nil {
		panic("limit: " + err.Error()) // only of a size below 1
	}
	return &plans{made: made}
}

// of returns the limiter for a plan, which is made if there is none. Faults are not kept, nor are policies that a caller
// has embedded in what cannot be a key.
func (p *plans) of(policies []Policy, make func() (*Limiter, error)) (*Limiter, error) {
	key, ok := planOf(policies)
	if !ok {
		return make()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, ok := p.made.Get(key); ok {
		return l, nil
	}
	l, err := make()
	if err == nil {
		p.made.Add(key, l)
	}
	return l, err
}

// planOf is not ok if a policy can be no key.
func planOf(policies []Policy) (p plan, ok bool) {
	for i, policy := range policies {
		if i == len(p.few) {
			p.rest, ok = planOf(policies[i:])
			return p, ok
		}
		p.few[i] = valueOf(policy)
		if !isKey(p.few[i]) {
			return p, false
		}
	}
	return p, true
}

// isKey looks into each policy that has another within, as valueOf does.
func isKey(p Policy) bool {
	switch p := p.(type) {
	case shadowed:
		return isKey(p.Policy)
	case banning:
		return isKey(p.Policy)
	case leased:
		return isKey(p.Policy)
	case perRequest:
		return isKey(p.Policy)
	case keptOnChange:
		return isKey(p.Policy)
	}
	return p == nil || reflect.TypeOf(p).Comparable()
}

// valueOf is a policy without the pointers, behind which its numbers may change.
func valueOf(p Policy) Policy {
	if isNil(p) {
		return p
	}
	switch p := p.(type) {
	case *TokenBucket:
		return *p
	case *FixedWindow:
		return *p
	case *SlidingWindow:
		return *p
	case *SlidingLog:
		return *p
	case *CalendarWindow:
		return *p
	case shadowed:
		return shadowed{valueOf(p.Policy)}
	case banning:
		return banning{valueOf(p.Policy), p.ban}
	case leased:
		return leased{valueOf(p.Policy), p.lease}
	case perRequest:
		return perRequest{valueOf(p.Policy)}
	case keptOnChange:
		return keptOnChange{valueOf(p.Policy)}
	}
	return p
}
