package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/history"
	"github.com/neap-go/neap/internal/redistest"
)

// simple is the lock of the tutorials: SET NX with a token. It is known to be wrong if
// its client repeats a command whose reply was lost, and if its release does not compare
// the token.
type simple struct {
	rdb     *redis.Client
	compare bool
	tokens  *atomic.Int64
	prefix  string
}

type simpleGrant struct {
	of    simple
	key   string
	token int64
}

func unknown(err error) error {
	return &script.Error{Script: "simple", Class: script.ErrMaybeExecuted, Err: err}
}

func (s simple) ask(ctx context.Context, key string, _ bool) (grant, error) {
	ctx = context.WithoutCancel(ctx)
	g := simpleGrant{s, s.prefix + key, s.tokens.Add(1)}
	err := s.rdb.SetArgs(ctx, g.key, g.token, redis.SetArgs{Mode: "NX", TTL: linearTTL}).Err()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, lock.ErrHeld
	case err != nil:
		return nil, unknown(err)
	}
	return g, nil
}

func (s simple) ForceRelease(ctx context.Context, key string) (bool, error) {
	n, err := s.rdb.Del(ctx, s.prefix+key).Result()
	return n == 1, err
}

func (simple) Inspect(context.Context, string) (lock.State, error) {
	return lock.State{}, errors.ErrUnsupported
}

func (g simpleGrant) Fence() int64 { return g.token }

func (g simpleGrant) Extend(ctx context.Context, _ time.Duration) error {
	return g.when(ctx, `return 1`)
}

func (g simpleGrant) Release(ctx context.Context) error {
	if !g.of.compare {
		if err := g.of.rdb.Del(ctx, g.key).Err(); err != nil {
			return unknown(err)
		}
		return nil
	}
	return g.when(ctx, `return redis.call('DEL', KEYS[1])`)
}

// when runs a command only while the token is there.
func (g simpleGrant) when(ctx context.Context, do string) error {
	n, err := g.of.rdb.Eval(ctx, `if redis.call('GET', KEYS[1]) == ARGV[1] then `+do+` end return 0`, []string{g.key}, g.token).Int()
	switch {
	case err != nil:
		return unknown(err)
	case n == 0:
		return lock.ErrLost
	}
	return nil
}

// stage runs a schedule: it has workers that take turns.
type stage struct {
	workers []*worker
	proxy   *redistest.Proxy
	rng     *rand.Rand
}

// chatter is the part that goes well: workers that get a lock, extend it and give it
// back.
func (s *stage) chatter(t *testing.T) {
	t.Helper()
	for range 5 + s.rng.IntN(10) {
		w := s.workers[s.rng.IntN(len(s.workers))]
		w.acquire(t.Context(), t, fmt.Sprint("key", s.rng.IntN(linearKeys)), false)
		if len(w.has) == 0 {
			continue
		}
		p := w.has[0]
		w.extend(t.Context(), t, &p)
		w.release(t.Context(), t, p)
		w.has = nil
	}
}

// schedules do the things that a lock may get wrong, each of them one.
var schedules = map[string]func(t *testing.T, s *stage, key string){
	"the reply of a grant is lost": func(t *testing.T, s *stage, key string) {
		t.Helper()
		s.proxy.Lose(redistest.EOF, 1, "set", "evalsha", "eval")
		s.workers[0].acquire(t.Context(), t, key, false)
		s.workers[1].acquire(t.Context(), t, key, false)
	},
	"the lock is another's by the time of the release": func(t *testing.T, s *stage, key string) {
		t.Helper()
		s.workers[0].acquire(t.Context(), t, key, false)
		s.workers[3].force(t.Context(), key)
		s.workers[1].acquire(t.Context(), t, key, false)
		for _, p := range s.workers[0].has {
			s.workers[0].release(t.Context(), t, p)
		}
		s.workers[0].has = nil
		s.workers[2].acquire(t.Context(), t, key, false)
	},
}

// TestCheckerFindsWhatIsWrong runs the schedules on locks that are wrong in one known way
// each, on some that are right, and on the library's own. Each seed finds every fault,
// and nothing else.
func TestCheckerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	srv, seed := redistest.Standalone(t), redistest.Seed(t)
	prefix := srv.Prefix(t)
	client := func(proxy *redistest.Proxy, retries int) *redis.Client {
		return srv.Admin(t, func(o *redis.Options) { o.Dialer, o.MaxRetries = proxy.Dial, retries })
	}
	var tokens atomic.Int64
	const lostReply, release = "the reply of a grant is lost", "the lock is another's by the time of the release"
	for name, c := range map[string]struct {
		mutex func(proxy *redistest.Proxy, prefix string) mutex
		wrong string
	}{
		"with the retries of go-redis": {func(proxy *redistest.Proxy, prefix string) mutex {
			return simple{client(proxy, 0), true, &tokens, prefix}
		}, lostReply},
		"release without compare": {func(proxy *redistest.Proxy, prefix string) mutex {
			return simple{client(proxy, -1), false, &tokens, prefix}
		}, release},
		"without either": {func(proxy *redistest.Proxy, prefix string) mutex {
			return simple{client(proxy, -1), true, &tokens, prefix}
		}, ""},
		"neap": {func(proxy *redistest.Proxy, prefix string) mutex {
			rdb := srv.Client(t, func(o *redis.Options) { o.Dialer = proxy.Dial })
			return neap{locker(t, history.Client{Client: rdb}, prefix, &lock.Options{Budget: 5 * time.Second, NoRenewal: true})}
		}, ""},
	} {
		proxy := srv.Proxy(t) // neap's work in the background would use up the fault that is meant for another call
		for schedule, play := range schedules {
			for stream := range uint64(20) {
				m, d := c.mutex(proxy, fmt.Sprint(prefix, tokens.Add(1))), &recorder{Recorder: history.NewRecorder()}
				s := &stage{proxy: proxy, rng: rand.New(rand.NewPCG(seed, stream))}
				for i := range 4 {
					s.workers = append(s.workers, &worker{id: i, mutex: m, recorder: d})
				}
				s.chatter(t)
				play(t, s, fmt.Sprint("key", s.rng.IntN(linearKeys)))
				s.chatter(t)
				want := porcupine.Ok
				if schedule == c.wrong {
					want = porcupine.Illegal
				}
				if got := history.Check(model, d.Ops(), end); got != want {
					t.Errorf("%s, %s, stream %d: got a history that is %s, want %s", name, schedule, stream, got, want)
				}
			}
		}
	}
}
