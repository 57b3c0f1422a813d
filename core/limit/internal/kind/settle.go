package kind

import "math"

// Refund gives back what a decision took at that moment, as limits/settle.lua does without a
// marker. It reports whether it gave anything back.
func (s *Set) Refund(cells []*Cell, now, cost int64, took []Reading, at Moment) (given bool) {
	for i, r := range s.Rules {
		if was := took[i]; !was.Refused() {
			r.Advance(cells[i], now)
			back := r.counts(r.Costs(cost), int64(was.Instances))
			given = r.Refund(cells[i], r.Told(was), back, back, at) || given
		}
	}
	return given
}

// Settle charges each rule for what was used beyond a cost that was taken at that moment, or
// gives back to it what was not. It returns the most that one rule forgave.
func (s *Set) Settle(cells []*Cell, now, cost, actual int64, took []Reading, at Moment, into []Reading) (forgiven int64) {
	for i, r := range s.Rules {
		r.Advance(cells[i], now)
		if was := took[i]; r.CanSettle(was) {
			n := max(int64(was.Instances), 1) // each permit counts n times
			if more := actual - cost; more > 0 {
				forgiven = max(forgiven, r.owe(cells[i], min(more, math.MaxInt64/n)*n)/n)
			} else if more < 0 {
				r.Refund(cells[i], r.Told(was), r.counts(cost, n), min(-more, math.MaxInt64/n)*n, at)
			}
		}
		into[i] = r.Read(cells[i], 0)
		into[i].Instances = took[i].Instances
	}
	return forgiven
}

// owe charges an advanced cell for permits that were used already. It returns how many the cell
// cannot hold.
func (r *Rule) owe(c *Cell, permits int64) (forgiven int64) {
	more := max(r.Room(c, r.Largest), 0)
	if permits <= more/r.Unit {
		more = permits * r.Unit
	}
	if more > 0 {
		r.Add(c, more)
	}
	return permits - more/r.Unit
}
