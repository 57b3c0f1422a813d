package gate

import (
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d              time.Duration
		want, positive int64
	}{
		{-time.Hour, 0, 1},
		{0, 0, 1},
		{1, 1, 1},
		{time.Second - 1, 1, 1},
		{time.Second, 1, 1},
		{time.Second + 1, 2, 2},
		{time.Hour, 3600, 3600},
		{1<<63 - 1, 9223372037, 9223372037},
	} {
		if got, positive := seconds(c.d), secondsAtLeastOne(c.d); got != c.want || positive != c.positive {
			t.Errorf("%v: got the seconds %d and %d, want %d and %d", c.d, got, positive, c.want, c.positive)
		}
	}
}
