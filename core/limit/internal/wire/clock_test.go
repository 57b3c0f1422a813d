package wire

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

func TestBetween(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &serverClock{at: 1e9, sent: now, got: now.Add(3 * time.Microsecond)}
	for _, c := range []struct {
		from, to time.Duration
		want     kind.Moment
	}{
		{0, 3 * time.Microsecond, kind.Moment{Soonest: 1e9 - 4, Latest: 1e9 + 4}}, // rounded outwards, by a thousandth of 3 µs
		{-time.Second, -time.Second, kind.Moment{Soonest: 1e9 - 1_001_004, Latest: 1e9 - 999_000}},
		{time.Second, time.Second, kind.Moment{Soonest: 1e9 + 998_997, Latest: 1e9 + 1_001_000}},
	} {
		got := s.between(now.Add(c.from), now.Add(c.to))
		if got != c.want {
			t.Errorf("the server's clock between %v and %v: got %+v, want %+v", c.from, c.to, got, c.want)
		}
	}
}
