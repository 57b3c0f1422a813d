package limit

import (
	"iter"
	"time"
)

// Decision is the answer to one request for permits.
//
// Policy, Limit, Remaining and the durations are those of the policy that binds. If the
// request was denied, that is the policy with the longest wait. If it was allowed, it is
// the policy that admits the fewest further requests of the same cost. They are zero if
// no policy is enforced.
type Decision struct {
	// Allowed reports whether the permits were granted. A denied request took nothing
	// from any policy.
	Allowed bool
	// Policy is the name of the policy that binds.
	Policy string
	// Limit is the most that can be taken at once: the policy's Burst or Limit.
	Limit int64
	// Remaining is how many permits could be taken now.
	Remaining int64
	// RetryAfter is how long until the same request is granted, if no other request takes
	// permits. It is 0 if the request was granted.
	RetryAfter time.Duration
	// ResetAfter is how long until no permit is in use any more.
	ResetAfter time.Duration
	// Degraded reports that the limiter's FailMode made the decision, because Redis did
	// not.
	Degraded bool
	// Cause says why Redis did not decide. It is nil if Redis did. Its text may name
	// keys, so show it to operators only.
	Cause error

	more  int64 // how many further requests of this kind the policy that binds admits now
	first State
	rest  []State
	grant *grant

	permits     *permits // from which it was granted; nil if it was charged by itself
	index, cost int64    // which of them
}

// State is what one policy reports after a decision.
type State struct {
	// Policy is the policy's name.
	Policy string
	// Unit is what the policy counts; empty means requests.
	Unit string
	// Shadow reports that the policy is not enforced.
	Shadow bool
	// Allowed reports whether this policy alone would have granted the permits.
	Allowed bool
	// Banned reports whether the subject is banned under this policy ([WithBan]).
	Banned bool
	// Limit is the most that can be taken at once: the policy's Burst or Limit.
	Limit int64
	// Remaining is how many permits could be taken now.
	Remaining int64
	// Window is the longest time in which a used-up policy becomes whole again. It is 0
	// for a calendar month.
	Window time.Duration
	// RetryAfter is how long until this policy grants the same request, if no other request
	// takes permits. It is 0 if the policy grants it.
	RetryAfter time.Duration
	// NextAfter is how long until more than Remaining can be taken. It is 0 if nothing is
	// in use.
	NextAfter time.Duration
	// ResetAfter is how long until no permit is in use any more.
	ResetAfter time.Duration
}

// Banned reports whether the subject is banned under an enforced policy. RetryAfter says
// for how long.
func (d *Decision) Banned() bool {
	for s := range d.States() {
		if s.Banned && !s.Shadow {
			return true
		}
	}
	return false
}

// States returns an iterator over the states of all policies: the enforced ones first, in
// the order in which they were given to the limiter.
func (d *Decision) States() iter.Seq[State] {
	return func(yield func(State) bool) {
		if d == nil || d.first.Policy == "" || !yield(d.first) {
			return
		}
		for _, s := range d.rest {
			if !yield(s) {
				return
			}
		}
	}
}

// judge fills in d from readings.
func (l *Limiter) judge(d *Decision, readings []reading, w wanted) {
	*d = Decision{Allowed: true}
	if len(l.rules) > 1 {
		d.rest = make([]State, 0, len(l.rules)-1)
	}
	for i, r := range l.rules {
		s := stateOf(r, readings[i], w.of(r))
		readings[i].bar(&s)
		s.Unit, s.Shadow = r.id().quotaUnit, r.id().shadow
		if i == 0 {
			d.first = s
		} else {
			d.rest = append(d.rest, s)
		}
		if s.Shadow {
			continue
		}
		d.Allowed = d.Allowed && s.Allowed
		if more := s.Remaining / max(w.of(r), 1); i == 0 || binds(&s, more, d) {
			d.more = more
			d.Policy, d.Limit, d.Remaining = s.Policy, s.Limit, s.Remaining
			d.RetryAfter, d.ResetAfter = s.RetryAfter, s.ResetAfter
		}
	}
}

// binds reports whether a state binds more than the one in d. more is how many further
// such requests the state admits. Remaining alone cannot decide it: one policy counts
// requests, and another tokens.
func binds(s *State, more int64, d *Decision) bool {
	switch {
	case s.RetryAfter != d.RetryAfter:
		return s.RetryAfter > d.RetryAfter
	case more != d.more:
		return more < d.more
	}
	return s.Remaining < d.Remaining
}
