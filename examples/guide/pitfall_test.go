package guide

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// pitfall asks the usual form and neap's form the same question, on the same server.
// The usual form must break as its chapter says, and neap's form must hold.
type pitfall[T comparable] struct {
	asks   string
	usual  func(scene) T
	breaks T
	neap   func(scene) T
	holds  T
}

// scene is what each of the two forms gets.
type scene struct {
	*testing.T
	rdb   redis.UniversalClient
	admin redis.UniversalClient // a user that may do everything; the usual form needs it as its rdb
	key   string                // no other test uses it
}

// run asks on miniredis and on a server, or on the given targets.
func (p pitfall[T]) run(t *testing.T, on ...redistest.Target) {
	t.Helper()
	if len(on) == 0 {
		on = []redistest.Target{redistest.OnMiniredis, redistest.OnStandalone}
	}
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, key string) {
		p.sideBySide(t, rdb, admin, key)
	}, on...)
}

// alone asks on a server that no other test uses.
func (p pitfall[T]) alone(t *testing.T, args ...string) {
	t.Helper()
	srv := redistest.NewStandalone(t, args...)
	p.sideBySide(t, srv.Client(t), srv.Admin(t), srv.Prefix(t))
}

// sideBySide gives neap's form the key that must be gone when the test ends.
func (p pitfall[T]) sideBySide(t *testing.T, rdb, admin redis.UniversalClient, key string) {
	t.Helper()
	t.Run("usual", func(t *testing.T) {
		p.compare(t, p.usual(scene{t, admin, admin, redistest.Prefix(t)}), p.breaks)
	})
	t.Run("neap", func(t *testing.T) {
		p.compare(t, p.neap(scene{t, rdb, admin, key}), p.holds)
	})
}

func (p pitfall[T]) compare(t *testing.T, got, want T) {
	t.Helper()
	t.Logf("%s: %v", p.asks, got)
	if got != want {
		t.Errorf("%s: got %v, want %v, as the chapter says", p.asks, got, want)
	}
}

// limiter makes a neap limiter whose keys begin with the scene's key.
func (s scene) limiter(policies ...limit.Policy) *limit.Limiter {
	s.Helper()
	limiter, err := limit.New(storetest.At(s, s.rdb, s.key), "guide", policies, &limit.Options{Budget: patience, Fail: store.FailClosed})
	s.must(err)
	return limiter
}

// keys returns the keys of the scene that exist.
func (s scene) keys() []string {
	s.Helper()
	keys, err := s.admin.Keys(s.Context(), "*"+s.key+"*").Result()
	s.must(err)
	return keys
}

// number returns the value of a counter, or 0 if there is none.
func (s scene) number(key string) int {
	s.Helper()
	n, err := s.admin.Get(s.Context(), key).Int()
	if !errors.Is(err, redis.Nil) {
		s.must(err)
	}
	return n
}

// immortal returns how many of the scene's keys never expire.
func (s scene) immortal() (n int) {
	s.Helper()
	for _, key := range s.keys() {
		if s.admin.PTTL(s.Context(), key).Val() == -1 {
			n++
		}
	}
	return n
}

// left returns how long the scene's only key still lives. It rounds up to ten
// seconds, because the machine can be busy.
func (s scene) left() time.Duration {
	s.Helper()
	keys := s.keys()
	if len(keys) != 1 {
		s.Fatalf("got the keys %q, want one", keys)
	}
	return (s.admin.PTTL(s.Context(), keys[0]).Val() + 10*time.Second - time.Millisecond).Truncate(10 * time.Second)
}

// pass makes time pass for the keys: it shortens their time to live by d. A negative
// d stands for a clock that was set back.
func (s scene) pass(d time.Duration) {
	s.Helper()
	for _, key := range s.keys() {
		if left := s.admin.PTTL(s.Context(), key).Val(); left > 0 {
			s.must(s.admin.PExpire(s.Context(), key, left-d).Err())
		}
	}
}

// together makes n calls at once, and returns how many were admitted.
func (s scene) together(n int, call func() (bool, error)) int {
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			switch allowed, err := call(); {
			case err != nil:
				s.Error(err)
			case allowed:
				admitted.Add(1)
			}
		})
	}
	callers.Wait()
	return int(admitted.Load())
}

// verdict says in a word what a request is told.
func verdict(admitted bool, err error) string {
	switch {
	case err != nil:
		return "error"
	case admitted:
		return "admitted"
	}
	return "denied"
}

// unless returns err, or nil if err is the expected error.
func unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// lossy returns a client behind a proxy. After a call of lose the proxy drops the
// reply to the next call of that command.
func (s scene) lossy(connect func(testing.TB, ...func(*redis.Options)) *redis.Client) (rdb *redis.Client, lose func(command string)) {
	s.Helper()
	proxy := redistest.Standalone(s.T).Proxy(s.T)
	rdb = connect(s.T, func(o *redis.Options) { o.Dialer = proxy.Dial })
	return rdb, func(command string) { proxy.Lose(redistest.EOF, 1, command) }
}

// patience is a budget that also suits a machine that is busy with other tests.
const patience = 10 * time.Second

// must ends the test if a call fails that has nothing to do with the pitfall.
func (s scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// said returns the text of an error, or "" if there is none.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
