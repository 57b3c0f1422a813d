package main

import (
	"context"
	"net/http"
	"sync"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"github.com/go-redis/redis_rate/v10"
	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislimiter"
	"github.com/sethvargo/go-redisstore"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

const redisRateName = "redis_rate"

func peers() []contestant {
	return []contestant{
		{
			name: redisRateName, what: "GCRA in floats, a script", module: "github.com/go-redis/redis_rate/v10",
			kind: peer, algorithm: bucket, open: openRedisRate,
		},
		{
			name: "redis_rate, AutoPipeline", what: "redis_rate through the same AsyncAutoPipeline", module: "github.com/go-redis/redis_rate/v10",
			kind: peer, algorithm: bucket, twin: redisRateName, crowd: true, open: openRedisRatePipelined,
		},
		{
			name: "throttled", what: "GCRA in nanoseconds, read and then compare-and-swap", module: "github.com/throttled/throttled/v2",
			kind: peer, algorithm: bucket, open: openThrottled,
		},
		{
			name: "go-redisstore", what: "permits that all come back at once, a script on a hash; redigo", module: "github.com/sethvargo/go-redisstore",
			kind: peer, algorithm: window, open: openRedisstore,
		},
		{
			name: "ulule/limiter", what: "fixed window, a script", module: "github.com/ulule/limiter/v3",
			kind: peer, algorithm: window, open: openUlule,
		},
		{
			name: "rueidislimiter", what: "fixed window, a script on two keys; rueidis, which pipelines", module: "github.com/redis/rueidis/rueidislimiter",
			kind: peer, algorithm: window, open: openRueidis,
		},
		{
			name: "httprate", what: "sliding window: MGET, then MULTI of INCRBY and EXPIRE, under a lock of the process",
			module: "github.com/go-chi/httprate-redis",
			kind:   peer, algorithm: sliding, open: openHTTPRate,
		},
	}
}

func openRedisRate(_ context.Context, e env, w workload) (*limiter, error) {
	rdb := e.client()
	return &limiter{take: redisRateTake(redis_rate.NewLimiter(rdb), w), close: rdb.Close}, nil
}

func openRedisRatePipelined(_ context.Context, e env, w workload) (*limiter, error) {
	pipe, closeAll, err := e.pipeline()
	if err != nil {
		return nil, err
	}
	return &limiter{take: redisRateTake(redis_rate.NewLimiter(pipe), w), close: closeAll}, nil
}

func redisRateTake(l *redis_rate.Limiter, w workload) func(context.Context, string) (bool, error) {
	q := w.quota(bucket)
	rate := redis_rate.Limit{Rate: int(q.refill), Period: q.window, Burst: int(q.limit)}
	return func(ctx context.Context, key string) (bool, error) {
		answer, err := l.Allow(ctx, key, rate)
		return err == nil && answer.Allowed > 0, err
	}
}

func openThrottled(ctx context.Context, e env, w workload) (*limiter, error) {
	rdb := e.client()
	store, err := throttledredis.NewCtx(rdb, "throttled:")
	if err != nil {
		return nil, err
	}
	q := w.quota(bucket)
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(int(q.refill), q.window), MaxBurst: int(q.limit) - 1,
	})
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			limited, _, err := l.RateLimitCtx(ctx, key, 1)
			return !limited && err == nil, err
		},
		close: rdb.Close,
	}, err
}

// openRedisstore gives it a pool like go-redis' own: the one it makes itself
// keeps no connection idle.
func openRedisstore(_ context.Context, e env, w workload) (*limiter, error) {
	q := w.quota(window)
	tokens := uint64(q.limit) //nolint:gosec // no limit is negative
	store, err := redisstore.NewWithPool(&redisstore.Config{Tokens: tokens, Interval: q.window}, &redigo.Pool{
		MaxActive: conns(), MaxIdle: conns(), Wait: true,
		Dial: func() (redigo.Conn, error) { return redigo.Dial("tcp", e.addr, redigo.DialDatabase(e.db)) },
	})
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			_, _, _, ok, err := store.Take(ctx, key)
			return ok, err
		},
		close: func() error { return store.Close(context.Background()) },
	}, err
}

func openUlule(_ context.Context, e env, w workload) (*limiter, error) {
	rdb := e.client()
	store, err := ululeredis.NewStore(rdb)
	if err != nil {
		return nil, err
	}
	q := w.quota(window)
	l := ulule.New(store, ulule.Rate{Period: q.window, Limit: q.limit})
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			answer, err := l.Get(ctx, key)
			return err == nil && !answer.Reached, err
		},
		close: rdb.Close,
	}, nil
}

func openRueidis(_ context.Context, e env, w workload) (*limiter, error) {
	q := w.quota(window)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{e.addr}, SelectDB: e.db, DisableCache: true,
	})
	if err != nil {
		return nil, err
	}
	l, err := rueidislimiter.NewRateLimiter(rueidislimiter.RateLimiterOption{
		ClientBuilder: func(rueidis.ClientOption) (rueidis.Client, error) { return client, nil },
		Limit:         int(q.limit), Window: q.window,
	})
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			answer, err := l.Allow(ctx, key)
			return answer.Allowed && err == nil, err
		},
		close: func() error { client.Close(); return nil },
	}, err
}

// openHTTPRate calls what its middleware calls. Request and header are made
// once and used again: a server has them anyway.
func openHTTPRate(_ context.Context, e env, w workload) (*limiter, error) {
	rdb := e.client()
	q := w.quota(sliding)
	l := httprate.NewRateLimiter(int(q.limit), q.window,
		httprateredis.WithRedisLimitCounter(&httprateredis.Config{Client: rdb, FallbackDisabled: true, WindowLength: q.window}),
		httprate.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, err error) { w.(*headerOnly).err = err }),
	)
	pool := sync.Pool{New: func() any { return &headerOnly{header: http.Header{}} }}
	request := new(http.Request)
	return &limiter{
		take: func(_ context.Context, key string) (bool, error) {
			answer := pool.Get().(*headerOnly)
			defer pool.Put(answer)
			clear(answer.header)
			answer.err = nil
			limited := l.OnLimit(answer, request, key)
			return !limited, answer.err
		},
		close: rdb.Close,
	}, nil
}

// headerOnly is a response of which nothing but the header is written.
type headerOnly struct {
	header http.Header
	err    error
}

func (h *headerOnly) Header() http.Header          { return h.header }
func (*headerOnly) WriteHeader(int)                {}
func (*headerOnly) Write(body []byte) (int, error) { return len(body), nil }
