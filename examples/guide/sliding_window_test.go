package guide

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMembersCollide(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how many of twenty requests within a millisecond are admitted, if the limit is ten a minute",
		usual: func(s scene) int {
			now := time.Now()
			return s.together(20, func() (bool, error) { return AllowByLog(s.Context(), s.rdb, zsetLog, s.key, now) })
		},
		breaks: 20,
		neap: func(s scene) int {
			limiter := s.limiter(limit.SlidingLog{Limit: 10, Window: time.Minute})
			return s.together(20, func() (bool, error) {
				decision, err := limiter.Take(s.Context(), "alice")
				return decision.Allowed, err
			})
		},
		holds: 10,
	}.run(t)
}

func TestDeniedRequestsStay(t *testing.T) {
	t.Parallel()
	pitfall[int64]{
		asks: "entries of the log after ten requests were admitted and ninety denied",
		usual: func(s scene) int64 {
			s.admitted(100, s.key, func(key string) (bool, error) {
				return AllowByMulti(s.Context(), s.rdb, key, time.Now())
			})
			return s.admin.ZCard(s.Context(), s.key).Val()
		},
		breaks: 100,
		neap: func(s scene) int64 {
			limiter := s.limiter(limit.SlidingLog{Limit: 10, Window: time.Minute})
			s.admitted(100, "alice", func(subject string) (bool, error) {
				decision, err := limiter.Take(s.Context(), subject)
				return decision.Allowed, err
			})
			return s.admin.LLen(s.Context(), s.keys()[0]).Val()
		},
		holds: 10,
	}.run(t)
}

func TestWhatALogCosts(t *testing.T) {
	t.Parallel()
	pitfall[bool]{
		asks: "whether each of 1,000 permits takes more than 20 bytes",
		usual: func(s scene) bool {
			for i := range 1000 {
				at := time.Now().UnixMilli() + int64(i)
				s.must(zsetLog.Run(s.Context(), s.rdb, []string{s.key}, at, time.Hour.Milliseconds(), 1000).Err())
			}
			return s.bytes() > 20*1000
		},
		breaks: true,
		neap: func(s scene) bool {
			limiter := s.limiter(limit.SlidingLog{Limit: 1000, Window: time.Hour})
			for range 1000 {
				_, err := limiter.Take(s.Context(), "alice")
				s.must(err)
			}
			return s.bytes() > 20*1000
		},
		holds: false,
	}.run(t, redistest.OnStandalone)
}

// TestAListHasNoMembers: the list counts equal times, which the sorted set does not.
func TestAListHasNoMembers(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	s := scene{t, srv.Admin(t), srv.Admin(t), srv.Prefix(t)}
	now := time.Now()
	ask := func() (bool, error) { return AllowByLog(s.Context(), s.rdb, listLog, s.key, now) }
	if n := s.together(20, ask); n != 10 {
		t.Errorf("twenty requests within a millisecond: got %d admitted, want 10", n)
	}
	now = now.Add(time.Minute)
	if n := s.together(11, ask); n != 10 {
		t.Errorf("eleven requests a minute later: got %d admitted, want 10", n)
	}
}

// bytes returns how much memory the scene's only key takes.
func (s scene) bytes() int64 {
	s.Helper()
	n, err := s.admin.MemoryUsage(s.Context(), s.keys()[0], 0).Result()
	s.must(err)
	s.Logf("%d bytes", n)
	return n
}
