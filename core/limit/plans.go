package limit

import (
	"reflect"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// mostPlans is how many limiters that With made are kept for its next calls.
const mostPlans = 16_384

// plans are the limiters that With made, by the values of their policies.
type plans struct {
	mu   sync.Mutex
	made *simplelru.LRU[plan, *Limiter]
}

// plan is a key made of the values of policies. If there are many, rest is a plan of
// those that do not fit into few.
type plan struct {
	few  [kind.Few]Policy
	rest any
}

func newPlans(most int) *plans {
	made, err := simplelru.NewLRU[plan, *Limiter](most, nil)
	if err != nil {
		panic("limit: " + err.Error()) // only if the size is below 1
	}
	return &plans{made: made}
}

// of returns the limiter for a plan. If there is none, it makes one. A plan with a fault
// is not kept. Nor is a policy that a caller has embedded in a type whose values refer to
// others.
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

// planOf makes a plan of policies. ok is false if a policy cannot be a key.
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

// isKey reports whether a policy can be a map key that equals another only if the policies do.
func isKey(p Policy) bool {
	p = bare(p)
	if p == nil {
		return true
	}
	t := reflect.TypeOf(p)
	is, ok := keyTypes.Load(t)
	if !ok {
		is, _ = keyTypes.LoadOrStore(t, isPlain(t))
	}
	return is.(bool)
}

var keyTypes sync.Map // what isPlain says, by the type

// isPlain reports whether the values of a type refer to nothing that may change, but for a
// Location, which does not. Types of callers may.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return t == reflect.TypeFor[*time.Location]()
	case reflect.Interface:
		return false
	case reflect.Array:
		return isPlain(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !isPlain(f.Type) {
				return false
			}
		}
	}
	return t.Comparable()
}
