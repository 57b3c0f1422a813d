package limit

import "time"

// timedDecision is a decision about a subject, and when it was made.
type timedDecision struct {
	Decision

	at time.Time
}

// expected reports whether a request would be denied. If so, it makes d that denial.
func (t *timedDecision) expected(l *Limiter, d *Decision, passed time.Duration, w wanted) bool {
	if t.grant == nil || len(t.grant.readings) == 0 || t.permits != nil || unshared(l.rules, t.grant.readings, w) { // the readings cannot tell
		*d = t.Decision
		d.RetryAfter = max(d.RetryAfter-passed, 0)
		return !d.Allowed
	}
	var few [fewRules]reading
	readings := append(few[:0], t.grant.readings...)
	for i, r := range l.rules {
		readings[i] = foresee(r, readings[i], int64(passed), w.of(r))
	}
	l.judge(d, readings, w)
	d.grant, d.Degraded, d.Cause = l.refused, t.Degraded, t.Cause
	i := 0
	for state := range d.States() {
		if over := w.of(l.rules[i]) - state.Limit; over > 0 && !state.Shadow {
			d.RetryAfter = max(d.RetryAfter, state.RetryAfter+beyond(l.rules[i], &state, over))
		}
		i++
	}
	return !d.Allowed
}

// beyond returns how much longer a request must wait, at least, that asks for more than
// the limit. over is by how many permits. The wait is measured from when a request of the
// whole limit would be granted.
func beyond(r rule, s *State, over int64) time.Duration {
	var wait float64
	switch r := r.(type) {
	case *bucket:
		wait = float64(over) * float64(r.unit) / float64(r.drain) * float64(r.tick)
	case *keptBucket:
		wait = float64(over) * micro / float64(r.drain) * float64(r.per) * float64(time.Microsecond)
	case *calendar: // windows differ in length
	case *sliding: // two windows overlap
		wait = float64(over/s.Limit) * float64(s.Window)
	default:
		windows := ceilDiv(over-s.Remaining, s.Limit)
		if s.Remaining == s.Limit {
			windows++
		}
		wait = float64(windows) * float64(s.Window)
	}
	return time.Duration(min(wait, float64(forever/4)))
}

// foresee returns what a rule would answer to a cost, some nanoseconds after a reading.
// If the reading of a log does not say when the cost would be granted, the time is when
// the log's next permit is free.
func foresee(r rule, was reading, passed, cost int64) reading {
	aged := r.age(was, passed/int64(time.Microsecond))
	aged.ban = agedBan(was.ban, passed)
	aged.instances = was.instances
	if _, log := r.(*slidingLog); !log {
		aged.denied = cost > stateOf(r, aged, 0).Remaining
		return aged
	}
	if !was.denied {
		aged.n[2] = 0 // after a grant, this number is the mark of its entries
		if aged.n[0]+cost > r.id().limit {
			aged.n[2] = aged.n[1]
		}
	}
	aged.denied = aged.n[2] > 0 || was.denied && passed == 0
	return aged
}
