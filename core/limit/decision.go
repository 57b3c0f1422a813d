package limit

import (
	"iter"
	"time"
)

// Decision is the answer to one request for permits. Policy, Limit, Remaining
// and the durations are those of the policy that binds: of a denied request
// the one that makes the caller wait longest, of an allowed one the one that
// admits the fewest more of such requests. They are zero where no policy is
// enforced.
type Decision struct {
	// Allowed says whether the permits were granted. A denied request took
	// nothing from any policy.
	Allowed bool
	// Policy is the name of the policy that binds.
	Policy string
	// Limit is the most that can be taken at once: the Burst or the Limit.
	Limit int64
	// Remaining is how much could be taken right now.
	Remaining int64
	// RetryAfter is how long a lone caller waits until the same request is
	// granted; 0 when it was.
	RetryAfter time.Duration
	// ResetAfter is how long until nothing is in use any more.
	ResetAfter time.Duration
	// Degraded says that Redis did not make the decision but the limiter's
	// FailMode did.
	Degraded bool
	// Cause is why Redis did not decide; nil when it did. Its text may name
	// keys and is for operators.
	Cause error

	more  int64 // how many such requests the policy that binds admits now
	first State
	rest  []State
	grant *grant

	permits     *permits // that it was granted of; nil if it was charged by itself
	index, cost int64    // which of them
}

// State is one policy's side of a decision, after it was made.
type State struct {
	// Policy is the policy's name.
	Policy string
	// Unit is what the policy counts; empty is requests.
	Unit string
	// Shadow says that the policy is not enforced.
	Shadow bool
	// Allowed says whether this policy alone would have granted the permits.
	Allowed bool
	// Banned says that the subject is banned under this policy ([WithBan]).
	Banned bool
	// Limit is the most that can be taken at once: the Burst or the Limit.
	Limit int64
	// Remaining is how much could be taken right now.
	Remaining int64
	// Window is how long an exhausted policy takes to become whole again, at most; 0 for
	// a calendar month.
	Window time.Duration
	// RetryAfter is how long a lone caller waits until this policy grants the
	// same request; 0 when it does.
	RetryAfter time.Duration
	// NextAfter is how long until more than Remaining can be taken; 0 when
	// nothing is in use.
	NextAfter time.Duration
	// ResetAfter is how long until nothing is in use any more.
	ResetAfter time.Duration
}

// Banned says whether the subject is banned under a policy that is enforced: for how long,
// RetryAfter tells.
func (d *Decision) Banned() bool {
	for s := range d.States() {
		if s.Banned && !s.Shadow {
			return true
		}
	}
	return false
}

// States yields the state of every policy, the enforced ones first, in the
// order they were given to the limiter.
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

// judge turns readings into what the caller sees.
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

// binds says whether a state, which admits so many more of such requests, binds more than the one that
// the decision tells of. What is left does not tell by itself: one policy counts requests, and another tokens.
func binds(s *State, more int64, d *Decision) bool {
	switch {
	case s.RetryAfter != d.RetryAfter:
		return s.RetryAfter > d.RetryAfter
	case more != d.more:
		return more < d.more
	}
	return s.Remaining < d.Remaining
}
