package limit

import (
	"fmt"
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

// plan is the values of policies, as a key. Those behind the first few are a text.
type plan struct {
	few  [fewRules]Policy
	rest string
}

func newPlans(most int) *plans {
	made, err := simplelru.NewLRU[plan, *Limiter](most, nil)
	if err != nil {
		panic("limit: " + err.Error()) // only of a size below 1
	}
	return &plans{made: made}
}

// of returns the limiter for a plan, which is made if there is none. Faults are not kept.
func (p *plans) of(policies []Policy, make func() (*Limiter, error)) (*Limiter, error) {
	key := planOf(policies)
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

func planOf(policies []Policy) (p plan) {
	for i, policy := range policies {
		if policy = valueOf(policy); i < len(p.few) {
			p.few[i] = policy
		} else {
			p.rest += fmt.Sprintf("%#v ", policy)
		}
	}
	return p
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
