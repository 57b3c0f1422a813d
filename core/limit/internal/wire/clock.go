package wire

import (
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// mostClocks is of how many servers the last reading is kept: servers leave a cluster.
const mostClocks = 1000

// serverClock is a reading of a server's clock, made at some instant between two readings
// of this process's clock.
type serverClock struct {
	at        int64 // in microseconds
	sent, got time.Time
}

// between returns what the server's clock shows at an instant between from and to.
func (s *serverClock) between(from, to time.Time) kind.Moment {
	soonest, latest := from.Sub(s.got), to.Sub(s.sent)
	return kind.Moment{
		Soonest: s.at + micros(soonest-max(soonest, -soonest)/kind.Drift),
		Latest:  s.at - micros(-latest-max(latest, -latest)/kind.Drift),
	}
}

// vague reports whether a new reading of the server's clock would tell more exactly when
// a decision was made.
func (s *serverClock) vague(of *kind.Request) bool {
	return s.got.Sub(of.Asked).Abs() > max(time.Since(of.Answered), 10*time.Second)
}

// micros rounds down.
func micros(d time.Duration) int64 {
	n := int64(d / time.Microsecond)
	if d%time.Microsecond < 0 {
		n--
	}
	return n
}
