package main

import (
	"context"
	"net/http"
	"sync"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"github.com/go-redis/redis_rate/v10"
	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislimiter"
	"github.com/sethvargo/go-redisstore"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

const redisRateName = "redis_rate"

// peers are the limiters of other libraries.
func peers() []contestant {
	return []contestant{
		{name: redisRateName, kind: peer, group: bucket, limiter: openRedisRate,
			what: "GCRA in floats, a script", module: "github.com/go-redis/redis_rate/v10"},
		{name: "redis_rate, AutoPipeline", kind: peer, group: bucket, limiter: openRedisRate,
			what: "redis_rate through the same AsyncAutoPipeline", module: "github.com/go-redis/redis_rate/v10",
			client: pipelined, variantOf: redisRateName, minGoroutines: manyCallers},
		{name: "throttled", kind: peer, group: bucket, limiter: openThrottled,
			what: "GCRA in nanoseconds, read and then compare-and-swap", module: "github.com/throttled/throttled/v2"},
		{name: "go-redisstore", kind: peer, group: window, limiter: openRedisstore,
			what:   "permits that all come back at once, a script on a hash; redigo",
			module: "github.com/sethvargo/go-redisstore"},
		{name: "ulule/limiter", kind: peer, group: window, limiter: openUlule,
			what: "fixed window, a script", module: "github.com/ulule/limiter/v3"},
		{name: "rueidislimiter", kind: peer, group: window, limiter: openRueidis,
			what:   "fixed window, a script on two keys; rueidis, which pipelines",
			module: "github.com/redis/rueidis/rueidislimiter"},
		{name: "httprate", kind: peer, group: sliding, limiter: openHTTPRate,
			what:   "sliding window: MGET, then MULTI of INCRBY and EXPIRE, under a lock of the process",
			module: "github.com/go-chi/httprate-redis"},
	}
}

func openRedisRate(_ context.Context, e *env, w workload) (take, error) {
	q, l := w.quota(bucket), redis_rate.NewLimiter(e.rdb)
	rate := redis_rate.Limit{Rate: int(q.refill), Period: q.window, Burst: int(q.limit)}
	return func(ctx context.Context, key string) (bool, error) {
		answer, err := l.Allow(ctx, key, rate)
		return err == nil && answer.Allowed > 0, err
	}, nil
}

func openThrottled(_ context.Context, e *env, w workload) (take, error) {
	store, err := throttledredis.NewCtx(e.rdb, "throttled:")
	if err != nil {
		return nil, err
	}
	q := w.quota(bucket)
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(int(q.refill), q.window), MaxBurst: int(q.limit) - 1,
	})
	return func(ctx context.Context, key string) (bool, error) {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited && err == nil, err
	}, err
}

// openRedisstore gives it a pool like go-redis' own: the one that it makes itself
// keeps no connection idle.
func openRedisstore(_ context.Context, e *env, w workload) (take, error) {
	q := w.quota(window)
	tokens := uint64(q.limit) //nolint:gosec // no limit is negative
	store, err := redisstore.NewWithPool(&redisstore.Config{Tokens: tokens, Interval: q.window}, &redigo.Pool{
		MaxActive: conns(), MaxIdle: conns(), Wait: true,
		Dial: func() (redigo.Conn, error) { return redigo.Dial("tcp", e.addr, redigo.DialDatabase(e.db)) },
	})
	if err != nil {
		return nil, err
	}
	e.onClose(func() error { return store.Close(context.Background()) })
	return func(ctx context.Context, key string) (bool, error) {
		_, _, _, ok, err := store.Take(ctx, key)
		return ok, err
	}, nil
}

func openUlule(_ context.Context, e *env, w workload) (take, error) {
	store, err := ululeredis.NewStore(e.rdb)
	if err != nil {
		return nil, err
	}
	q := w.quota(window)
	l := ulule.New(store, ulule.Rate{Period: q.window, Limit: q.limit})
	return func(ctx context.Context, key string) (bool, error) {
		answer, err := l.Get(ctx, key)
		return err == nil && !answer.Reached, err
	}, nil
}

func openRueidis(_ context.Context, e *env, w workload) (take, error) {
	q := w.quota(window)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{e.addr}, SelectDB: e.db, DisableCache: true,
	})
	if err != nil {
		return nil, err
	}
	e.ends(client.Close)
	l, err := rueidislimiter.NewRateLimiter(rueidislimiter.RateLimiterOption{
		ClientBuilder: func(rueidis.ClientOption) (rueidis.Client, error) { return client, nil },
		Limit:         int(q.limit), Window: q.window,
	})
	return func(ctx context.Context, key string) (bool, error) {
		answer, err := l.Allow(ctx, key)
		return answer.Allowed && err == nil, err
	}, err
}

// openHTTPRate calls what its middleware calls. Request and header are made once and
// used again: a server has them anyway.
func openHTTPRate(_ context.Context, e *env, w workload) (take, error) {
	q := w.quota(sliding)
	config := &httprateredis.Config{Client: e.rdb.(*redis.Client), FallbackDisabled: true, WindowLength: q.window}
	l := httprate.NewRateLimiter(int(q.limit), q.window, httprateredis.WithRedisLimitCounter(config),
		httprate.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, err error) { w.(*headerOnly).err = err }),
	)
	pool := sync.Pool{New: func() any { return &headerOnly{header: http.Header{}} }}
	request := new(http.Request)
	return func(_ context.Context, key string) (bool, error) {
		answer := pool.Get().(*headerOnly)
		defer pool.Put(answer)
		clear(answer.header)
		answer.err = nil
		limited := l.OnLimit(answer, request, key)
		return !limited, answer.err
	}, nil
}

// headerOnly is a response that keeps its header and drops its body.
type headerOnly struct {
	header http.Header
	err    error
}

func (h *headerOnly) Header() http.Header          { return h.header }
func (*headerOnly) WriteHeader(int)                {}
func (*headerOnly) Write(body []byte) (int, error) { return len(body), nil }
