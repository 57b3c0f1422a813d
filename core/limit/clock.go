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

// mostClocks is how many are kept before all are read anew: servers leave a cluster.
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

// moment is when something happened by a clock that was seen from afar, in
// microseconds.
type moment struct{ soonest, latest int64 }

// in says whether a request of that moment, which found rest milliseconds of
// its window left, was in the one that ends at end. A moment that may lie in
// two windows is in none. Before Redis 7.2, whose clock moves within a script,
// rest may be told a millisecond short.
func (m moment) in(end, rest, length int64) bool {
	first, last := m.soonest/1000+rest, m.latest/1000+rest
	return last-first+1 < length && first-1 <= end && end <= last
}

// serverClock is a reading of a server's clock, made at some instant between two of
// this process' own.
type serverClock struct {
	at        int64 // in microseconds
	sent, got time.Time
}

// drift is the part of an interval by which two clocks may differ on it, one in
// a thousand: clocks that are being set right run up to half of it fast or slow.
const drift = 1000

// between is what the server's clock shows at an instant between two.
func (s *serverClock) between(from, to time.Time) moment {
	soonest, latest := from.Sub(s.got), to.Sub(s.sent)
	return moment{
		soonest: s.at + micros(soonest-max(soonest, -soonest)/drift),
		latest:  s.at - micros(-latest-max(latest, -latest)/drift),
	}
}

// vague says that to look at the clock anew would tell better when a decision
// was made.
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
