package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
)

// guard is a contestant at work that has a request run once and repeats its answer.
// Keys have 36 characters. Its functions fail where they did something else than
// their name says.
type guard struct {
	first    func(ctx context.Context, key string) error
	replay   func(ctx context.Context, key string) error // of a key that first was called with
	runs     func() int64                                // of the handler; nil where there is none
	unlocked bool                                        // every request reaches the handler
	fill     func(ctx context.Context) error             // what is there from the beginning; nil for nothing
}

type guardOpener = func(context.Context, *env) (*guard, error)

// The groups of GUARD.md. The first contestant of each is its floor.
const (
	direct   = "Called directly"
	overHTTP = "Behind Fiber, over HTTP"
)

const (
	guardGET    = "GET, or GET and SET"
	guardScript = "EVALSHA return 1, or twice"
	guardByLua  = "the same GET and SET, by scripts"
	neapGuard   = "neap"
	neapSealed  = "neap, encrypted"
)

// answer is what is stored: 1 KB.
var answer = []byte(strings.Repeat("0123456789abcdef", 64))

// fingerprint has the length of a SHA-256 in hex.
const fingerprint = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// guards are called directly.
func guards() []contestant {
	return []contestant{
		{name: guardGET, kind: floor, group: direct, guard: openGuardGET,
			what: "the least that keeps an answer; two requests may run at once"},
		{name: guardScript, kind: floor, group: direct, guard: openGuardScript,
			what: "the least that a script costs"},
		{name: guardByLua, kind: floor, group: direct, guard: openGuardByLua,
			what: "the least that a script costs that returns the answer, or stores it"},
		{name: neapGuard, kind: ours, group: direct, guard: openGuard(),
			what: "core/idempotency: Begin and Conclude, or Begin"},
		{name: neapSealed, kind: ours, group: direct, what: "the same with a key of AES-256",
			guard: openGuard(idempotency.EncryptionKey{ID: "bench", Secret: []byte("thirty-two bytes of no secret...")})},
	}
}

func openGuardGET(_ context.Context, e *env) (*guard, error) {
	return getAndSet(
		func(ctx context.Context, key string) (string, error) { return e.rdb.Get(ctx, key).Result() },
		func(ctx context.Context, key string) error { return e.rdb.Set(ctx, key, answer, time.Hour).Err() },
	), nil
}

func openGuardByLua(ctx context.Context, e *env) (*guard, error) {
	get, err := e.rdb.ScriptLoad(ctx, "return redis.call('GET', KEYS[1])").Result()
	set, fault := e.rdb.ScriptLoad(ctx, "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])").Result()
	return getAndSet(
		func(ctx context.Context, key string) (string, error) {
			return e.rdb.EvalSha(ctx, get, []string{key}).Text()
		},
		func(ctx context.Context, key string) error {
			return e.rdb.EvalSha(ctx, set, []string{key}, answer, "3600000").Err()
		},
	), errors.Join(err, fault)
}

func getAndSet(
	get func(ctx context.Context, key string) (string, error), set func(ctx context.Context, key string) error,
) *guard {
	return &guard{
		first: func(ctx context.Context, key string) error {
			if _, err := get(ctx, key); !errors.Is(err, redis.Nil) {
				return errors.Join(errNotRun, err)
			}
			return set(ctx, key)
		},
		replay: func(ctx context.Context, key string) error {
			text, err := get(ctx, key)
			if errors.Is(err, redis.Nil) {
				return errors.Join(errRun, err)
			}
			return same(text, err)
		},
	}
}

var (
	errRun    = fmt.Errorf("%w: what was done before ran again", errWrong)
	errNotRun = fmt.Errorf("%w: what was never done did not run", errWrong)
)

func same[T string | []byte](text T, err error) error {
	if err == nil && string(text) != string(answer) {
		return fmt.Errorf("%w: %d bytes that are not the answer to the first request", errWrong, len(text))
	}
	return err
}

func openGuardScript(ctx context.Context, e *env) (*guard, error) {
	take, err := scriptOfOne(ctx, e.rdb)
	once := func(ctx context.Context, key string) error {
		_, err := take(ctx, key)
		return err
	}
	twice := func(ctx context.Context, key string) error { return errors.Join(once(ctx, key), once(ctx, key)) }
	return &guard{first: twice, replay: once}, err
}

func openGuard(keys ...idempotency.EncryptionKey) guardOpener {
	return func(_ context.Context, e *env) (*guard, error) {
		g, err := idempotency.New(e.rdb, "bench", idempotency.Retry{}, &idempotency.Options{Budget: budget, EncryptionKeys: keys})
		return &guard{
			first: func(ctx context.Context, key string) error {
				begun, err := g.Begin(ctx, key, fingerprint)
				c := begun.Claim
				if err != nil || c == nil {
					return errors.Join(errNotRun, err)
				}
				return c.Conclude(ctx, idempotency.DoneWith(answer))
			},
			replay: func(ctx context.Context, key string) error {
				begun, err := g.Begin(ctx, key, fingerprint)
				c, text := begun.Claim, begun.Result
				if c != nil {
					return errors.Join(errRun, c.Conclude(ctx, idempotency.NothingDone()))
				}
				return same(text, err)
			},
		}, err
	}
}
