package guide

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMemoryIsFull(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what a client over its limit is told while the server is full",
		usual: func(s scene) string {
			return s.whenFull("noeviction", func() (bool, error) {
				return AllowInWindow(s.Context(), s.rdb, window, s.key, time.Minute)
			})
		},
		breaks: "error",
		neap: func(s scene) string {
			limiter := tenAMinute(s)
			return s.whenFull("noeviction", func() (bool, error) {
				decision, err := limiter.Take(s.Context(), "alice")
				return decision.Allowed, err
			})
		},
		holds: "denied",
	}.alone(t)
}

func TestAnEvictedClientIsNew(t *testing.T) {
	t.Parallel()
	ask := func(s scene, policy string) string {
		limiter := tenAMinute(s)
		take := func() (bool, error) {
			decision, err := limiter.Take(s.Context(), "alice")
			return decision.Allowed, err
		}
		s.whenFull(policy, take)
		return verdict(take())
	}
	pitfall[string]{
		asks:   "what a client over its limit is told after the server was full for a moment",
		usual:  func(s scene) string { return ask(s, "volatile-lru") },
		breaks: "admitted",
		neap:   func(s scene) string { return ask(s, "noeviction") },
		holds:  "denied",
	}.alone(t)
}

func TestARedisThatHangs(t *testing.T) {
	t.Parallel()
	// hanging reports whether a call takes longer than two seconds.
	hanging := func(s scene, call func(ctx context.Context, rdb *redis.Client) error) bool {
		srv := redistest.NewStandalone(s.T)
		rdb := srv.Client(s.T)
		s.must(rdb.Ping(s.Context()).Err())
		srv.Pause(s.T)
		ctx, cancel := context.WithTimeout(s.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := call(ctx, rdb); err == nil {
			s.Error("a call to a server that hangs: got no error, want one")
		}
		return time.Since(began) > 2*time.Second
	}
	pitfall[bool]{
		asks: "whether a call whose context ends after 100 ms takes longer than two seconds",
		usual: func(s scene) bool {
			return hanging(s, func(ctx context.Context, rdb *redis.Client) error {
				_, err := AllowInWindow(ctx, rdb, window, s.key, time.Minute)
				return err
			})
		},
		breaks: true,
		neap: func(s scene) bool {
			return hanging(s, func(ctx context.Context, rdb *redis.Client) error {
				limiter, err := limit.New(rdb, "guide", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Minute}},
					&limit.Options{Fail: store.FailClosed})
				s.must(err)
				_, err = limiter.Take(ctx, "alice")
				return err
			})
		},
		holds: false,
	}.run(t, redistest.OnStandalone)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	s := scene{t, srv.Admin(t), srv.Admin(t), srv.Prefix(t)}
	for range 20 {
		_, err := VisitByScript(s.Context(), s.rdb, s.key)
		s.must(err)
	}
	s.must(s.rdb.ScriptFlush(s.Context()).Err())
	s.whenFull("noeviction", func() (bool, error) {
		_, err := VisitByScript(s.Context(), s.rdb, s.key)
		return true, err
	})
	h, err := Watch(s.Context(), srv.Admin(t))
	s.must(err)
	if h.Calls < 20 || h.EachFor <= 0 || h.EachFor > time.Second || h.Refused != 2 || h.Full == 0 || h.Evicted != 0 || h.Scripts != 1 {
		t.Errorf("got %+v, want 20 calls at least, 2 refused, a full memory, none evicted and 1 script", h)
	}
}

// whenFull asks eleven times. The limit admits ten of them. Then it asks once more while
// the server has no memory left, and returns that answer.
func (s scene) whenFull(policy string, ask func() (bool, error)) string {
	s.Helper()
	for range 11 {
		_, err := ask()
		s.must(err)
	}
	s.must(s.admin.ConfigSet(s.Context(), "maxmemory-policy", policy).Err())
	s.must(s.admin.ConfigSet(s.Context(), "maxmemory", "1").Err())
	if policy != "noeviction" {
		redistest.Await(s.T, patience, "the key to be evicted", func() bool { return len(s.keys()) == 0 })
	}
	told := verdict(ask())
	s.must(s.admin.ConfigSet(s.Context(), "maxmemory", "0").Err())
	return told
}
