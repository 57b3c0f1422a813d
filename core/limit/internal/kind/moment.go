package kind

// Moment is when something happened by the clock of another machine, in microseconds.
// That clock is known only roughly, so the moment lies between two bounds.
type Moment struct{ Soonest, Latest int64 }

// in reports whether a request was in the window that ends at end. The request was made
// at this moment, and its window then had rest milliseconds left. The ends of two windows
// are at least a length apart, so the nearest end is the right one. After a failover it may
// be an end of another clock, and off by less than mostOff. If the moment may lie in two
// windows, in reports false. Before Redis 7.2 the clock moves within a script, so rest may
// be a millisecond too small.
func (m Moment) in(end, rest, length int64) bool {
	first, last := m.Soonest/1000+rest-1, m.Latest/1000+rest
	off := min(length-(last-first), 2*mostOff) // twice the time by which the other clock may be off
	return off > 0 && 2*(first-end) < off && 2*(end-last) < off
}

// mostOff is by how many milliseconds the clocks of two servers may differ. A larger bound
// would take more windows that began after a Reset for the decision's own.
const mostOff = 10_000
