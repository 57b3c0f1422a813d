package guide

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

func TestTwoClocks(t *testing.T) {
	t.Parallel()
	apart(func(s scene, now time.Time) (bool, error) {
		return AllowByLog(s.Context(), s.rdb, listLog, s.key, now)
	}, limit.SlidingLog{Limit: 10, Window: time.Minute}).run(t, redistest.OnStandalone)
}

// TestTwoMinutes asks the same of counters that have the minute in their names.
func TestTwoMinutes(t *testing.T) {
	t.Parallel()
	apart(func(s scene, now time.Time) (bool, error) {
		return AllowInMinute(s.Context(), s.rdb, s.key, now)
	}, limit.FixedWindow{Limit: 10, Window: time.Minute}).run(t, redistest.OnStandalone)
}

func apart(allow func(scene, time.Time) (bool, error), policy limit.Policy) pitfall[int] {
	return pitfall[int]{
		asks: "how many requests two instances admit whose clocks are 90 s apart, if the limit is ten a minute",
		usual: func(s scene) int {
			here, there := time.Now(), time.Now().Add(90*time.Second)
			return s.admitted(20, s.key, func(string) (bool, error) { return allow(s, here) }) +
				s.admitted(20, s.key, func(string) (bool, error) { return allow(s, there) })
		},
		breaks: 20,
		neap:   func(s scene) int { return s.inTwoYears(policy) },
		holds:  10,
	}
}

// inTwoYears asks twenty times by this process's clock, and twenty times in a
// bubble, in which it is the year 2000.
func (s scene) inTwoYears(policy limit.Policy) (admitted int) {
	s.Helper()
	ask := func(s scene) int {
		limiter := s.limiter(policy)
		return s.admitted(20, "alice", func(subject string) (bool, error) {
			decision, err := limiter.Take(s.Context(), subject)
			return decision.Allowed, err
		})
	}
	admitted = ask(s)
	synctest.Test(s.T, func(t *testing.T) {
		rdb := redistest.Standalone(t).Client(t)
		admitted += ask(scene{t, rdb, s.admin, s.key})
		if year := time.Now().Year(); year != 2000 {
			t.Errorf("the clock of the bubble: got the year %d, want 2000", year)
		}
	})
	return admitted
}
