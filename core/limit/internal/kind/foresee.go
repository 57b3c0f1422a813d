package kind

import "time"

// Foresee returns what a rule would answer to a cost, some time after a reading.
func (r *Rule) Foresee(was Reading, passed time.Duration, cost int64) (aged Reading) {
	if l, is := r.Algorithm.(*log); is {
		aged = l.foresee(was, passed.Microseconds(), cost)
	} else {
		aged = r.Age(was, passed.Microseconds())
	}
	aged.Ban, aged.Hold = max(was.Ban-passed.Milliseconds(), 0), max(was.Hold-passed.Milliseconds(), 0)
	aged.Instances = was.Instances
	if !r.Entries {
		aged.Denied = cost > r.figures(aged, 0).Remaining
	}
	return aged
}

// Recall is Foresee after a denial, whose cost was denied. ok is false if the reading does not say when
// the larger cost would be granted.
func (r *Rule) Recall(was Reading, passed time.Duration, denied, cost int64) (aged Reading, ok bool) {
	aged = r.Foresee(was, passed, cost)
	if l, is := r.Algorithm.(*log); is {
		return l.atLeast(aged), cost <= denied
	}
	return aged, true
}

// Beyond returns how much longer a request must wait, at least, that asks for more than
// the limit. over is by how many permits. The wait is measured from when a request of the
// whole limit would be granted.
func (r *Rule) Beyond(over, remaining int64) time.Duration {
	return time.Duration(min(r.Algorithm.Beyond(over, remaining), float64(Forever/4)))
}

// Forever is longer than anything lasts.
const Forever = time.Duration(1<<63 - 1)

// Drift says by how much two clocks may differ over an interval: one part in a thousand. A clock
// that is being corrected runs fast or slow by up to half of that.
const Drift = 1000

// Sure returns what a process can rely on, by its own clock, of a time that Redis told. Redis counts
// times to live in milliseconds, and the clocks drift apart.
func Sure(told time.Duration) time.Duration { return told - time.Millisecond - told/Drift }
