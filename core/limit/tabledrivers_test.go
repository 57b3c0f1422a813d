package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// driver is where the limiters of the table keep their state.
type driver struct {
	name string
	// coarse: its keys end by whole milliseconds only if they began at one.
	coarse bool
	// local limiters ignore what is for Redis alone.
	local bool
	// few: it makes fewer walks, since it differs little from another driver.
	few bool
	// lone: other subjects are on other servers.
	lone bool
	// down: Redis never answers, so the failure mode decides, and what only Redis does is an error.
	down bool
	// before is called outside of the bubble, and what it returns in the bubble.
	before func(t *testing.T) func(t *testing.T) processes
}

// maker makes a limiter.
type maker func(name string, policies []limit.Policy, opts *limit.Options) (*limit.Limiter, error)

// processes share one Redis.
type processes struct {
	one maker
	// another can lose its connection. It sends each call by itself.
	another func() (maker, *redistest.CutClient)
	// keys are the keys in Redis, and lives sets how long one lives; 0 is for ever.
	keys  func(pattern string) []string
	lives func(key string, d time.Duration)
	// dump returns all that stands in Redis; nil where keys may end at any time.
	dump  func() redistest.Dumped
	clock *redistest.OnClock // of Redis; nil if it is that of the process
	sent  func() int64       // counts the scripts that one sends; nil if it has no Redis
	// hold holds what one sends, until release; nil if it has no Redis.
	hold func() (release func())
	// merged counts the merged calls that one sent; nil if it has no Redis.
	merged func() int64
}

var drivers = []driver{
	{name: "in process", local: true, before: func(*testing.T) func(*testing.T) processes {
		return func(*testing.T) processes { return processes{one: limit.NewLocal} }
	}},
	{name: "without Redis", down: true, before: func(*testing.T) func(*testing.T) processes {
		return func(t *testing.T) processes {
			rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
			rdb.Cut("refused")
			return processes{one: on(t, rdb, "neap")}
		}
	}},
	{name: "miniredis", coarse: true, before: func(*testing.T) func(*testing.T) processes {
		return func(t *testing.T) processes {
			m := redistest.Bubble(t)
			all := sharing(t, "neap", func() *redis.Client { return redistest.BubbleClient(t, m) })
			rdb := redistest.BubbleClient(t, m)
			all.lives = func(key string, d time.Duration) {
				err := rdb.Persist(t.Context(), key).Err()
				if d > 0 {
					err = rdb.PExpire(t.Context(), key, d).Err()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			all.dump = func() redistest.Dumped { return redistest.Dump(t, rdb, "neap:limit:") }
			return all
		}
	}},
	{name: "server", before: func(t *testing.T) func(*testing.T) processes {
		t.Helper()
		srv := redistest.Standalone(t)
		return onServer(srv, srv.Prefix(t), redistest.Rand(t))
	}},
	{name: "node of a cluster", few: true, lone: true, before: func(t *testing.T) func(*testing.T) processes {
		t.Helper()
		c := redistest.Cluster(t)
		return onServer(c.NodeOf(t, "{s}"), c.Prefix(t), redistest.Rand(t))
	}},
}

// onServer has a real server whose clock is not that of the process, but goes as fast.
func onServer(srv *redistest.Server, prefix string, rng *rand.Rand) func(*testing.T) processes {
	return func(t *testing.T) processes {
		clock := &redistest.OnClock{Ahead: []time.Duration{
			0, 250 * time.Microsecond, -time.Millisecond, 3 * time.Hour, -3 * time.Hour, 40 * day, -40 * day,
		}[rng.IntN(7)]}
		all := sharing(t, prefix, func() *redis.Client { return clock.Client(t, srv) })
		rdb := clock.Client(t, srv)
		all.lives, all.clock = func(key string, d time.Duration) { clock.Lives(t, rdb, key, d) }, clock
		return all
	}
}

func sharing(t *testing.T, prefix string, connect func() *redis.Client) processes {
	t.Helper()
	rdb, hook, merges := connect(), new(redistest.CountingHook), new(mergeHook)
	rdb.AddHook(hook)
	rdb.AddHook(merges)
	return processes{
		hold:   merges.hold,
		merged: merges.merged.Load,
		one:    on(t, rdb, prefix),
		sent:   hook.Scripts.Load,
		another: func() (maker, *redistest.CutClient) {
			rdb := &redistest.CutClient{Client: connect()}
			return on(t, rdb, prefix), rdb
		},
		keys: func(pattern string) []string {
			all, err := rdb.Keys(t.Context(), prefix+":"+pattern).Result()
			if err != nil {
				t.Fatal(err)
			}
			return all
		},
	}
}

// on makes limiters on a client's Redis.
func on(t *testing.T, rdb script.Client, prefix string) maker {
	t.Helper()
	st, err := store.Open(rdb, &store.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return func(name string, policies []limit.Policy, opts *limit.Options) (*limit.Limiter, error) {
		return limit.New(st, name, policies, opts)
	}
}
