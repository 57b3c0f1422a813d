package main

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/neap-go/neap/core/lock"
)

// acquire waits for the lock of a key, and returns how to release it unless it fails.
type acquire func(ctx context.Context, key string) (release func() error, err error)

const (
	neapLock  = "neap"
	pollName  = "1 ms poll"
	boundName = "bound"
	redsyncIs = "redsync"
	bslName   = "redislock, 100 ms"
	lease     = 30 * time.Second
)

// lockers are all of them; the bound, which shows what the machine allows, is the
// floor. The poll is the measure of Redis' time.
func lockers() []contestant {
	return []contestant{
		{name: boundName, kind: floor, locker: bound(),
			what: "locks nothing: a queue in this process, and EVALSHA of `return 1` for acquire and for release, " +
				"or once for a hand-over"},
		{name: neapLock, kind: ours, what: "core/lock with its defaults", locker: openNeapLock},
		{name: pollName, kind: floor, what: "SET NX PX every millisecond, compare and delete", locker: openPoll},
		{name: redsyncIs, kind: peer, what: "defaults, one pool", locker: openRedsync,
			module: "github.com/go-redsync/redsync/v4"},
		{name: bslName, kind: peer, what: "LinearBackoff of 100 ms", locker: redislockEvery(100 * time.Millisecond),
			module: "github.com/bsm/redislock"},
		{name: "redislock, 1 ms", kind: peer, what: "LinearBackoff of 1 ms", locker: redislockEvery(time.Millisecond),
			module: "github.com/bsm/redislock"},
		{name: "rueidislock", kind: peer, what: "defaults: 2 of 3 keys", locker: rueidislockOf(0),
			module: "github.com/redis/rueidis"},
		{name: "rueidislock, 1 key", kind: peer, what: "KeyMajority 1, NoLoopTracking", locker: rueidislockOf(1),
			module: "github.com/redis/rueidis"},
	}
}

func openNeapLock(_ context.Context, e *env) (acquire, error) {
	l, err := lock.New(e.rdb, "bench", &lock.Options{Budget: budget})
	return func(ctx context.Context, key string) (func() error, error) {
		held, err := l.Acquire(ctx, key)
		return func() error { return held.Release(ctx) }, err
	}, err
}

var compareAndDelete = redis.NewScript(`
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0
`)

func openPoll(_ context.Context, e *env) (acquire, error) {
	return func(ctx context.Context, key string) (func() error, error) {
		token := rand.Text()
		for {
			if ok, err := e.rdb.SetNX(ctx, key, token, lease).Result(); ok || err != nil {
				return func() error { return compareAndDelete.Run(ctx, e.rdb, []string{key}, token).Err() }, err
			}
			time.Sleep(time.Millisecond)
		}
	}, nil
}

// bound is what no lock that asks Redis once a hand-over can surpass.
func bound() func(context.Context, *env) (acquire, error) {
	var queues sync.Map
	return func(ctx context.Context, e *env) (acquire, error) {
		take, err := scriptOfOne(ctx, e.rdb)
		return func(ctx context.Context, key string) (func() error, error) {
			queue, _ := queues.LoadOrStore(key, make(chan struct{}, 1))
			turn := queue.(chan struct{})
			ask := func() error { _, err := take(ctx, key); return err }
			release := func() error { err := ask(); <-turn; return err }
			select {
			case turn <- struct{}{}:
				return release, ask()
			default:
				turn <- struct{}{}
				return release, nil
			}
		}, err
	}
}

func openRedsync(_ context.Context, e *env) (acquire, error) {
	rs := redsync.New(goredis.NewPool(e.rdb))
	return func(ctx context.Context, key string) (func() error, error) {
		m := rs.NewMutex(key)
		return func() error { _, err := m.UnlockContext(ctx); return err }, m.LockContext(ctx)
	}, nil
}

func redislockEvery(pause time.Duration) func(context.Context, *env) (acquire, error) {
	return func(_ context.Context, e *env) (acquire, error) {
		locker := redislock.New(e.rdb)
		return func(ctx context.Context, key string) (func() error, error) {
			options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(pause)}
			held, err := locker.Obtain(ctx, key, lease, options)
			return func() error { return held.Release(ctx) }, err
		}, nil
	}
}

// tooLong ends a wait of rueidislock, which then asks again. Between processes it now and then waits forever
// for a lock that is free.
const tooLong = 5 * time.Second

func rueidislockOf(majority int32) func(context.Context, *env) (acquire, error) {
	return func(_ context.Context, e *env) (acquire, error) {
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{e.addr}, SelectDB: e.db},
			KeyMajority:  majority, NoLoopTracking: majority == 1,
		})
		if err != nil {
			return nil, err
		}
		e.ends(l.Close)
		return func(ctx context.Context, key string) (func() error, error) {
			for {
				attempt, cancel := context.WithTimeout(ctx, tooLong)
				_, release, err := l.WithContext(attempt, key)
				if err == nil {
					return func() error { release(); cancel(); return nil }, nil
				}
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
					return nil, err
				}
			}
		}, nil
	}
}
