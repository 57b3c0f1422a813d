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

// mutexes is one process' way to lock keys.
type mutexes struct {
	// acquire waits for a lock, and returns how to release it.
	acquire func(ctx context.Context, key string) (release func() error, err error)
	close   func() error
}

// locking is a contestant that locks.
type locking struct {
	name   string
	what   string
	kind   kind
	module string
	open   func(e env) (*mutexes, error)
}

const (
	neapLock  = "neap"
	pollName  = "1 ms poll"
	boundName = "bound"
	lease     = 30 * time.Second
	bslName   = "redislock, 100 ms"
	bslFast   = "redislock, 1 ms"
	redsyncIs = "redsync"
)

// lockings are those who lock; the poll, in the order of the tables, is the
// measure of Redis' time, and the bound that of the machine.
func lockings() []locking {
	return []locking{
		{name: neapLock, what: "core/lock with its defaults", kind: ours, open: openNeapLock},
		{name: boundName, what: "locks nothing: a queue in this process, and EVALSHA of `return 1` for each of its two questions, or for one hand-over", kind: floor, open: bound()},
		{name: pollName, what: "SET NX PX every millisecond, compare and delete", kind: floor, open: openPoll},
		{name: redsyncIs, what: "defaults, one pool", kind: peer, module: "github.com/go-redsync/redsync/v4", open: openRedsync},
		{name: bslName, what: "LinearBackoff of 100 ms", kind: peer, module: "github.com/bsm/redislock", open: redislockEvery(100 * time.Millisecond)},
		{name: bslFast, what: "LinearBackoff of 1 ms", kind: peer, module: "github.com/bsm/redislock", open: redislockEvery(time.Millisecond)},
		{name: "rueidislock", what: "defaults: 2 of 3 keys", kind: peer, module: "github.com/redis/rueidis", open: rueidislockOf(0)},
		{name: "rueidislock, 1 key", what: "KeyMajority 1, NoLoopTracking", kind: peer, module: "github.com/redis/rueidis", open: rueidislockOf(1)},
	}
}

func openNeapLock(e env) (*mutexes, error) {
	rdb := e.client()
	l, err := lock.New(rdb, "bench", &lock.Options{Budget: budget})
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	return &mutexes{
		acquire: func(ctx context.Context, key string) (func() error, error) {
			held, err := l.Acquire(ctx, key)
			if err != nil {
				return nil, err
			}
			return func() error { return held.Release(ctx) }, nil
		},
		close: rdb.Close,
	}, nil
}

var compareAndDelete = redis.NewScript(`
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0
`)

func openPoll(e env) (*mutexes, error) {
	rdb := e.client()
	return &mutexes{
		acquire: func(ctx context.Context, key string) (func() error, error) {
			token := rand.Text()
			for {
				switch ok, err := rdb.SetNX(ctx, key, token, lease).Result(); {
				case err != nil:
					return nil, err
				case ok:
					return func() error { return compareAndDelete.Run(ctx, rdb, []string{key}, token).Err() }, nil
				}
				time.Sleep(time.Millisecond)
			}
		},
		close: rdb.Close,
	}, nil
}

var returnOne = redis.NewScript("return 1")

// bound is what no lock that asks Redis once a hand-over can surpass.
func bound() func(env) (*mutexes, error) {
	var queues sync.Map
	return func(e env) (*mutexes, error) {
		rdb := e.client()
		if err := returnOne.Load(context.Background(), rdb).Err(); err != nil {
			return nil, errors.Join(err, rdb.Close())
		}
		return &mutexes{
			acquire: func(ctx context.Context, key string) (func() error, error) {
				queue, _ := queues.LoadOrStore(key, make(chan struct{}, 1))
				turn := queue.(chan struct{})
				ask := func() error { return returnOne.EvalSha(ctx, rdb, []string{key}).Err() }
				release := func() error { err := ask(); <-turn; return err }
				select {
				case turn <- struct{}{}:
					return release, ask()
				default:
					turn <- struct{}{}
					return release, nil
				}
			},
			close: rdb.Close,
		}, nil
	}
}

func openRedsync(e env) (*mutexes, error) {
	rdb := e.client()
	rs := redsync.New(goredis.NewPool(rdb))
	return &mutexes{
		acquire: func(ctx context.Context, key string) (func() error, error) {
			m := rs.NewMutex(key)
			if err := m.LockContext(ctx); err != nil {
				return nil, err
			}
			return func() error { _, err := m.UnlockContext(ctx); return err }, nil
		},
		close: rdb.Close,
	}, nil
}

func redislockEvery(pause time.Duration) func(env) (*mutexes, error) {
	return func(e env) (*mutexes, error) {
		rdb := e.client()
		locker := redislock.New(rdb)
		return &mutexes{
			acquire: func(ctx context.Context, key string) (func() error, error) {
				held, err := locker.Obtain(ctx, key, lease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(pause)})
				if err != nil {
					return nil, err
				}
				return func() error { return held.Release(ctx) }, nil
			},
			close: rdb.Close,
		}, nil
	}
}

// tooLong is how long rueidislock may wait, which between processes waits for
// ever now and then for a lock that is free.
const tooLong = 5 * time.Second

func rueidislockOf(majority int32) func(env) (*mutexes, error) {
	return func(e env) (*mutexes, error) {
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{e.addr}, SelectDB: e.db},
			KeyMajority:  majority, NoLoopTracking: majority == 1,
		})
		if err != nil {
			return nil, err
		}
		return &mutexes{
			acquire: func(ctx context.Context, key string) (func() error, error) {
				ctx, cancel := context.WithTimeout(ctx, tooLong)
				_, release, err := l.WithContext(ctx, key)
				if err != nil {
					cancel()
					return nil, err
				}
				return func() error { release(); cancel(); return nil }, nil
			},
			close: func() error { l.Close(); return nil },
		}, nil
	}
}
