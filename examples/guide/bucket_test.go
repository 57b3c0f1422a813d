package guide

import (
	"strconv"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

var begin = time.UnixMilli(1_800_000_000_000)

func TestAFractionIsLost(t *testing.T) {
	t.Parallel()
	const pause = 600 * time.Millisecond
	pitfall[bool]{
		asks: "whether a client that asks every 0.6 s gets a token that comes every second",
		usual: func(s scene) bool {
			now := begin
			return s.admitted(100, s.key, func(key string) (bool, error) {
				now = now.Add(pause)
				return AllowByBucket(s.Context(), s.rdb, usualBucket, key, 1, now)
			}) > 1
		},
		breaks: false,
		neap: func(s scene) bool {
			limiter := s.limiter(limit.TokenBucket{Rate: 1, Per: time.Second, Burst: 1})
			return s.admitted(100, "alice", func(subject string) (bool, error) {
				s.pass(pause)
				decision, err := limiter.Take(s.Context(), subject)
				return decision.Allowed, err
			}) > 1
		},
		holds: true,
	}.run(t)
}

func TestFractionsDrift(t *testing.T) {
	t.Parallel()
	pitfall[time.Duration]{
		asks: "how long a client that asks every ten seconds waits for a token that comes every 100 seconds",
		usual: func(s scene) time.Duration {
			return s.until(func(passed time.Duration) (bool, error) {
				return AllowByBucket(s.Context(), s.rdb, floatBucket, s.key, 0.01, begin.Add(passed))
			})
		},
		breaks: 110 * time.Second,
		neap: func(s scene) time.Duration {
			limiter := s.limiter(limit.TokenBucket{Rate: 1, Per: 100 * time.Second, Burst: 1})
			return s.until(func(time.Duration) (bool, error) {
				s.pass(10 * time.Second)
				decision, err := limiter.Take(s.Context(), "alice")
				return decision.Allowed, err
			})
		},
		holds: 100 * time.Second,
	}.run(t, redistest.OnStandalone)
}

func TestBucketsStay(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "keys without a time to live that a hundred clients leave behind",
		usual: func(s scene) int {
			for i := range 100 {
				_, err := AllowByBucket(s.Context(), s.rdb, usualBucket, s.key+strconv.Itoa(i), 1, begin)
				s.must(err)
			}
			return s.immortal()
		},
		breaks: 100,
		neap: func(s scene) int {
			limiter := s.limiter(limit.TokenBucket{Rate: 1, Per: time.Second, Burst: 1})
			for i := range 100 {
				_, err := limiter.Take(s.Context(), strconv.Itoa(i))
				s.must(err)
			}
			return s.immortal()
		},
		holds: 0,
	}.run(t)
}

// until takes a token, asks every ten seconds for the next one, and returns how long
// that took.
func (s scene) until(ask func(passed time.Duration) (bool, error)) (passed time.Duration) {
	s.Helper()
	if allowed, err := ask(0); err != nil || !allowed {
		s.Fatalf("the first token: got %t, %v, want true", allowed, err)
	}
	for passed = 10 * time.Second; passed < time.Hour; passed += 10 * time.Second {
		if allowed, err := ask(passed); err != nil {
			s.Fatal(err)
		} else if allowed {
			break
		}
	}
	return passed
}
