package limit

import (
	"iter"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/prepaid"
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

	more    int64 // how many further requests of this kind the policy that binds admits now
	first   State
	rest    []State
	request *request

	permits     *prepaid.Permits // from which it was granted; nil if it was charged by itself
	index, cost int64            // which of them
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
	// OnHold reports whether the subject is on hold ([Limiter.Hold]). Only the first policy
	// reports it.
	OnHold bool
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

// OnHold reports whether the subject is on hold by [Limiter.Hold]. RetryAfter says for how
// long.
func (d *Decision) OnHold() bool { return d != nil && d.first.OnHold && !d.first.Shadow }

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
func (l *Limiter) judge(d *Decision, readings []kind.Reading, w kind.Wanted) {
	var few [kind.Few]kind.Figures
	v, figures := l.set.Judge(readings, w, few[:0])
	*d = Decision{Allowed: v.Allowed, more: v.More}
	if len(figures) > 1 {
		d.rest = make([]State, 0, len(figures)-1)
	}
	for i, r := range l.set.Rules {
		f := &figures[i]
		s := State{
			Policy: r.Name, Unit: r.QuotaUnit, Shadow: r.Shadow,
			Allowed: f.Allowed, Banned: f.Banned, OnHold: f.OnHold, Limit: r.Limit, Remaining: f.Remaining, Window: f.Window,
			RetryAfter: f.RetryAfter, NextAfter: f.NextAfter, ResetAfter: f.ResetAfter,
		}
		if i == 0 {
			d.first = s
		} else {
			d.rest = append(d.rest, s)
		}
		if i == v.Binds {
			d.Policy, d.Limit, d.Remaining = s.Policy, s.Limit, s.Remaining
			d.RetryAfter, d.ResetAfter = s.RetryAfter, s.ResetAfter
		}
	}
}
