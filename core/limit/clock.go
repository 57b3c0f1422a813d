package limit

import (
	"sync"
	"time"
)

// serverClocks are the last readings of the servers' clocks, by the server's address.
type serverClocks struct {
	mu   sync.Mutex
	seen map[string]*serverClock
}

// mostClocks is how many readings are kept before all are discarded: servers leave a
// cluster.
const mostClocks = 1000

func (s *serverClocks) last(address string) *serverClock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[address]
}

func (s *serverClocks) note(address string, seen *serverClock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) >= mostClocks {
		s.seen = map[string]*serverClock{}
	}
	s.seen[address] = seen
}

// moment is when something happened by the clock of another machine, in microseconds.
// That clock is known only roughly, so the moment lies between two bounds.
type moment struct{ soonest, latest int64 }

// in reports whether a request was in the window that ends at end. The request was made
// at this moment, and its window then had rest milliseconds left. The ends of two windows
// are at least a length apart, so the nearest end is the right one. After a failover it may
// be an end of another clock, and off by less than mostOff. If the moment may lie in two
// windows, in reports false. Before Redis 7.2 the clock moves within a script, so rest may
// be a millisecond too small.
func (m moment) in(end, rest, length int64) bool {
	first, last := m.soonest/1000+rest-1, m.latest/1000+rest
	off := min(length-(last-first), 2*mostOff) // twice the time by which the other clock may be off
	return off > 0 && 2*(first-end) < off && 2*(end-last) < off
}

// mostOff is by how many milliseconds the clocks of two servers may differ. A larger bound
// would take more windows that began after a Reset for the decision's own.
const mostOff = 10_000

// serverClock is a reading of a server's clock, made at some instant between two readings
// of this process's clock.
type serverClock struct {
	at        int64 // in microseconds
	sent, got time.Time
}

// drift says by how much two clocks may differ over an interval: one part in a thousand.
// A clock that is being corrected runs fast or slow by up to half of that.
const drift = 1000

// between returns what the server's clock shows at an instant between from and to.
func (s *serverClock) between(from, to time.Time) moment {
	soonest, latest := from.Sub(s.got), to.Sub(s.sent)
	return moment{
		soonest: s.at + micros(soonest-max(soonest, -soonest)/drift),
		latest:  s.at - micros(-latest-max(latest, -latest)/drift),
	}
}

// vague reports whether a new reading of the server's clock would tell more exactly when
// a decision was made.
func (s *serverClock) vague(g *grant) bool {
	return s.got.Sub(g.asked).Abs() > max(time.Since(g.answered), 10*time.Second)
}

// micros rounds down.
func micros(d time.Duration) int64 {
	n := int64(d / time.Microsecond)
	if d%time.Microsecond < 0 {
		n--
	}
	return n
}
