package kind

import "time"

// Rule is a policy that is ready to use: an algorithm, and its terms.
type Rule struct {
	Algorithm
	*Facts
	Terms
}

// Terms are what is said about a policy beside its numbers.
type Terms struct {
	Name string // as decisions report it
	Tail string // the end of a Redis key: the name and the numbers
	// QuotaUnit tells clients what a permit is; empty means requests.
	QuotaUnit string
	// Shadow reports that the policy is decided and not enforced.
	Shadow bool
	Ban    *Ban // nil if it has none
	// Lease is how long an estimate outlives its process; 0 means until the window ends.
	Lease time.Duration
	// Once reports that a request costs 1, whatever its cost is.
	Once bool
	// Kept has the numbers of a policy that keeps its state when they change.
	Kept string
}

// NewRule returns a rule with a name and an algorithm.
func NewRule(name, tail string, by Algorithm) *Rule {
	return &Rule{Algorithm: by, Facts: by.facts(), Terms: Terms{Name: name, Tail: tail}}
}

// Costs returns what a request of that cost costs the policy. Below 0 it is a question.
func (r *Rule) Costs(cost int64) int64 {
	if r.Once {
		return max(min(cost, 1), -1)
	}
	return cost
}

// Units returns what a request of that cost costs the policy, in its units. All that is above
// the limit is denied alike.
func (r *Rule) Units(cost int64) int64 {
	return max(min(r.Costs(cost), r.Limit+1), -r.Limit-1) * r.Unit
}

// CanSettle reports whether the policy took permits for a decision and can be settled.
func (r *Rule) CanSettle(told Reading) bool { return !told.Refused() && !r.Once }

// Wanted is what a caller asks for: how many permits, for how many requests.
type Wanted struct{ Permits, Requests int64 }

// Wants returns what one request of that cost asks for.
func Wants(cost int64) Wanted { return Wanted{cost, min(cost, 1)} }

// Plus returns the sum.
func (w Wanted) Plus(other Wanted) Wanted {
	return Wanted{w.Permits + other.Permits, w.Requests + other.Requests}
}

// Of returns what a policy counts for w.
func (w Wanted) Of(r *Rule) int64 {
	if r.Once {
		return w.Requests
	}
	return w.Permits
}
