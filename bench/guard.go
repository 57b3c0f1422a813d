package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
)

// guarding is a contestant that has a request run once and repeats its answer.
type guarding struct {
	name   string
	what   string
	kind   kind
	module string
	kin    kin
	open   func(ctx context.Context, e env) (*guarded, error)
	// middleware is that of a contestant over HTTP.
	middleware middleware
}

// guarded is one process' way to do so. Keys have 36 characters. Both fail
// where they did something else than their name says.
type guarded struct {
	first  func(ctx context.Context, key string) error
	replay func(ctx context.Context, key string) error // of a key that first was called with
	runs   func() int64                                // of the handler; nil where there is none
	free   bool                                        // nothing stands before the handler
	fill   func(ctx context.Context) error             // puts what is there from the beginning into an empty database; nil is nothing
	close  func() error
}

// kin says which contestants do the same; the first of each is the measure of
// the others.
type kin string

const (
	direct   kin = "called directly"
	overHTTP kin = "behind Fiber, over HTTP"
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

// fingerprintOf has the length of a SHA-256 in hex.
const fingerprintOf = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func guardings() []guarding {
	return append([]guarding{
		{
			name: guardGET, what: "the least that keeps an answer, which keeps nobody from running beside another",
			kind: floor, kin: direct, open: openGuardGET,
		},
		{name: guardScript, what: "the least that a script costs", kind: floor, kin: direct, open: openGuardScript},
		{name: guardByLua, what: "the least that a script costs which returns the answer, or takes it", kind: floor, kin: direct, open: openGuardByLua},
		{name: neapGuard, what: "core/idempotency: Begin and Complete, or Begin", kind: ours, kin: direct, open: openGuard()},
		{
			name: neapSealed, what: "the same with a key of AES-256", kind: ours, kin: direct,
			open: openGuard(idempotency.Key{ID: "bench", Secret: []byte("thirty-two bytes of no secret...")}),
		},
	}, fiberGuardings()...)
}

var (
	errRan    = errors.New("what was done before ran again")
	errNotRan = errors.New("what was never done did not run")
)

func openGuardGET(_ context.Context, e env) (*guarded, error) {
	rdb := e.client()
	return &guarded{
		first: func(ctx context.Context, key string) error {
			if err := rdb.Get(ctx, key).Err(); !errors.Is(err, redis.Nil) {
				return errors.Join(errNotRan, err)
			}
			return rdb.Set(ctx, key, answer, time.Hour).Err()
		},
		replay: func(ctx context.Context, key string) error {
			text, err := rdb.Get(ctx, key).Bytes()
			return same(text, err)
		},
		close: rdb.Close,
	}, nil
}

func openGuardByLua(ctx context.Context, e env) (*guarded, error) {
	rdb := e.client()
	get, err := rdb.ScriptLoad(ctx, "return redis.call('GET', KEYS[1])").Result()
	set, fault := rdb.ScriptLoad(ctx, "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])").Result()
	return &guarded{
		first: func(ctx context.Context, key string) error {
			if err := rdb.EvalSha(ctx, get, []string{key}).Err(); !errors.Is(err, redis.Nil) {
				return errors.Join(errNotRan, err)
			}
			return rdb.EvalSha(ctx, set, []string{key}, answer, "3600000").Err()
		},
		replay: func(ctx context.Context, key string) error {
			text, err := rdb.EvalSha(ctx, get, []string{key}).Text()
			return same(text, err)
		},
		close: rdb.Close,
	}, errors.Join(err, fault)
}

func same[T string | []byte](text T, err error) error {
	if err == nil && string(text) != string(answer) {
		return fmt.Errorf("an answer of %d bytes is another than that of the first", len(text))
	}
	return err
}

func openGuardScript(ctx context.Context, e env) (*guarded, error) {
	rdb := e.client()
	take, err := floorTake(ctx, rdb)
	once := func(ctx context.Context, key string) error {
		_, err := take(ctx, key)
		return err
	}
	return &guarded{
		first:  func(ctx context.Context, key string) error { return errors.Join(once(ctx, key), once(ctx, key)) },
		replay: once, close: rdb.Close,
	}, err
}

func openGuard(keys ...idempotency.Key) func(context.Context, env) (*guarded, error) {
	return func(_ context.Context, e env) (*guarded, error) {
		rdb := e.client()
		g, err := idempotency.New(rdb, "bench", &idempotency.Options{Budget: budget, Keys: keys})
		if err != nil {
			return nil, errors.Join(err, rdb.Close())
		}
		return &guarded{
			first: func(ctx context.Context, key string) error {
				run, err := g.Begin(ctx, key, fingerprintOf)
				c := run.Claim
				if err != nil || c == nil {
					return errors.Join(errNotRan, err)
				}
				return c.Complete(ctx, answer)
			},
			replay: func(ctx context.Context, key string) error {
				run, err := g.Begin(ctx, key, fingerprintOf)
				c, text := run.Claim, run.Result
				if c != nil {
					return errors.Join(errRan, c.Abandon(ctx))
				}
				return same(text, err)
			},
			close: rdb.Close,
		}, nil
	}
}

// serials make keys that were never used before.
var serials atomic.Uint64

// operation is a key in the form of a UUID.
func operation() string {
	n := serials.Add(1)
	return fmt.Sprintf("0198c2f5-7d1c-7c7e-%04x-%012x", n>>48, n&(1<<48-1))
}
