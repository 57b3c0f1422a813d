package line

import (
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Answer is how a request of a waiter was decided.
type Answer struct {
	Allowed    bool
	RetryAfter time.Duration
	Readings   []kind.Reading // nil if they do not say when another request would be granted
	Of         any            // what the caller makes a decision of
}

// Denial is a denial of a waiter that was not asked for, because the last answer tells it.
type Denial struct {
	RetryAfter time.Duration
	Wanted     kind.Wanted    // what the waiter and those ahead of it ask for
	Readings   []kind.Reading // nil if the answer itself is the denial
	Of         any            // that of the last answer
}

// timedAnswer is an answer, and when it was given.
type timedAnswer struct {
	Answer

	at time.Time
}

// foreseen is what an answer tells of another request.
type foreseen struct {
	denied     bool
	retryAfter time.Duration
	wanted     kind.Wanted
	readings   []kind.Reading
}

// foresee returns what the answer tells, some time later, of a request that asks for w. The readings
// are appended to into.
func (t *timedAnswer) foresee(set *kind.Set, passed time.Duration, w kind.Wanted, into []kind.Reading) foreseen {
	if t.Readings == nil || set.Unshared(t.Readings, w) {
		return foreseen{!t.Allowed, max(t.RetryAfter-passed, 0), w, nil}
	}
	for i, r := range set.Rules {
		into = append(into, r.Foresee(t.Readings[i], passed, w.Of(r)))
	}
	var few [kind.Few]kind.Figures
	v, figures := set.Judge(into, w, few[:0])
	told := foreseen{denied: !v.Allowed, wanted: w, readings: into}
	if v.Binds >= 0 {
		told.retryAfter = figures[v.Binds].RetryAfter
	}
	for i, r := range set.Rules {
		if over := w.Of(r) - r.Limit; over > 0 && !r.Shadow {
			told.retryAfter = max(told.retryAfter, figures[i].RetryAfter+r.Beyond(over, figures[i].Left))
		}
	}
	return told
}

// denial returns the denial that was foreseen from an answer.
func (f *foreseen) denial(from *Answer) *Denial {
	return &Denial{f.retryAfter, f.wanted, append([]kind.Reading(nil), f.readings...), from.Of}
}
