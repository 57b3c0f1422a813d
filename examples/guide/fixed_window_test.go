package guide

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

func TestTheWindowNeverEnds(t *testing.T) {
	t.Parallel()
	pitfall[time.Duration]{
		asks: "how much of the minute is left after a request was denied in its last ten seconds",
		usual: func(s scene) time.Duration {
			for asked := range 11 {
				if asked == 10 {
					s.pass(50 * time.Second)
				}
				_, err := AllowInWindow(s.Context(), s.rdb, usualWindow, s.key, time.Minute)
				s.must(err)
			}
			return s.left()
		},
		breaks: time.Minute,
		neap: func(s scene) time.Duration {
			limiter := tenAMinute(s)
			for asked := range 11 {
				if asked == 10 {
					s.pass(50 * time.Second)
				}
				_, err := limiter.Take(s.Context(), "alice")
				s.must(err)
			}
			return s.left()
		},
		holds: 10 * time.Second,
	}.run(t)
}

func TestTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	pitfall[time.Duration]{
		asks: "how much of a minute is left after the server's clock was set back by a day",
		usual: func(s scene) time.Duration {
			_, err := AllowInWindow(s.Context(), s.rdb, window, s.key, time.Minute)
			s.must(err)
			s.pass(-24 * time.Hour)
			_, err = AllowInWindow(s.Context(), s.rdb, window, s.key, time.Minute)
			s.must(err)
			return s.left()
		},
		breaks: 24*time.Hour + time.Minute,
		neap: func(s scene) time.Duration {
			limiter := tenAMinute(s)
			_, err := limiter.Take(s.Context(), "alice")
			s.must(err)
			s.pass(-24 * time.Hour)
			_, err = limiter.Take(s.Context(), "alice")
			s.must(err)
			return s.left()
		},
		holds: time.Minute,
	}.run(t)
}

func TestTheEdge(t *testing.T) {
	t.Parallel()
	const second = time.Second
	pitfall[int]{
		asks: "how many requests are admitted within a second across a window's end, if the limit is ten a second",
		usual: func(s scene) int {
			return s.acrossTheEdge(second, func(key string) (bool, error) {
				return AllowInWindow(s.Context(), s.rdb, window, key, second)
			})
		},
		breaks: 19,
		neap: func(s scene) int {
			limiter := s.limiter(limit.SlidingLog{Limit: 10, Window: second})
			return s.acrossTheEdge(second, func(key string) (bool, error) {
				decision, err := limiter.Take(s.Context(), key)
				return decision.Allowed, err
			})
		},
		holds: 10,
	}.run(t, redistest.OnStandalone)
}

// acrossTheEdge asks once, nine times shortly before the window is over, and ten
// times when it is over. It returns how many of the last nineteen were admitted. If a
// busy machine took too long for that, it tries again with another key.
func (s scene) acrossTheEdge(window time.Duration, ask func(key string) (bool, error)) (most int) {
	s.Helper()
	for attempt := range 20 {
		key := s.key + string(rune('a'+attempt))
		first := time.Now()
		s.admitted(1, key, ask)
		begin := time.Now()
		redistest.Await(s.T, patience, "the end of the window to come near", func() bool {
			return time.Since(begin) > window*9/10
		})
		before := time.Now()
		n := s.admitted(9, key, ask)
		slow := time.Since(first) >= window
		redistest.Await(s.T, patience, "the end of the window", func() bool {
			return time.Since(begin) > window+10*time.Millisecond
		})
		n += s.admitted(10, key, ask)
		if !slow && time.Since(before) < window {
			return n
		}
	}
	s.Fatal("the machine was too slow in each of 20 windows, want one window in time")
	return 0
}

// admitted asks n times in a row, and returns how many were admitted.
func (s scene) admitted(n int, key string, ask func(key string) (bool, error)) (admitted int) {
	s.Helper()
	for range n {
		allowed, err := ask(key)
		s.must(err)
		if allowed {
			admitted++
		}
	}
	return admitted
}
