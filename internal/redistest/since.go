package redistest

import (
	"testing"
	"time"
)

// Since holds what is granted to nobody to being given back within two seconds of
// the server's return, but for the times that the machine may have stood still.
type Since struct {
	stalled func() time.Duration
	back    time.Time
}

// NewSince is for a server that will be away.
func NewSince(tb testing.TB) Since {
	tb.Helper()
	return Since{stalled: Witness(tb)}
}

// Back says that the server is back, now.
func (s *Since) Back() { s.back = time.Now() }

// inTurn is how many things are done one after another until all is given back: timers
// fire, connections are made, scripts are answered, the test looks. The machine may stand
// still during each of them.
const inTurn = 20

// Undone is when all is given back.
func (s *Since) Undone(tb testing.TB) {
	tb.Helper()
	if took := time.Since(s.back); took > 2*time.Second+inTurn*s.stalled() {
		tb.Errorf("what was granted without an answer was given back after %v, want %v at most",
			took, 2*time.Second+inTurn*s.stalled())
	}
}
