// Package comingfrom is neap's side of the pages in docs/coming-from: what a call of another library
// becomes. The calls of those libraries are in bench/comingfrom, since users of neap do not compile them.
package comingfrom

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/contrib/redis_rate"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/nethttp"
)

// RedisRate is the call of redis_rate, unchanged.
func RedisRate(ctx context.Context, rdb *redis.Client) (bool, error) {
	limiter := redis_rate.NewLimiter(rdb)
	res, err := limiter.Allow(ctx, "project:123", redis_rate.PerSecond(10))
	if err != nil {
		return false, err
	}
	return res.Allowed > 0, nil
}

// RedisRateWithoutRedis goes on in each process while Redis is away.
func RedisRateWithoutRedis(rdb *redis.Client) (*redis_rate.Limiter, error) {
	return redis_rate.New(rdb, &limit.Options{
		Budget: 50 * time.Millisecond,
		Fail:   store.FailLocal,
	})
}

// InsteadOfRedisRate is the same limit without the API of redis_rate.
func InsteadOfRedisRate(ctx context.Context, rdb *redis.Client) (bool, error) {
	limiter, err := limit.New(rdb, "projects", []limit.Policy{
		limit.TokenBucket{Rate: 10, Per: time.Second},
	}, nil)
	if err != nil {
		return false, err
	}
	d, err := limiter.Take(ctx, "project:123")
	if err != nil {
		return false, err
	}
	return d.Allowed, nil
}

// Ulule is 1,000 requests an hour for each address.
func Ulule(rdb *redis.Client, hello http.Handler) (http.Handler, error) {
	limiter, err := limit.New(rdb, "api", []limit.Policy{
		limit.FixedWindow{Limit: 1000, Window: time.Hour},
	}, nil)
	if err != nil {
		return nil, err
	}
	perIP := gate.RateLimit(limiter, gate.ByIP(nil), &gate.RateLimitOptions{Headers: gate.HeadersXEpoch})
	return nethttp.Middleware(perIP)(hello), nil
}

// Tollbooth is a request a second for each address and path, in this process.
func Tollbooth(hello http.Handler) (http.Handler, error) {
	limiter, err := limit.NewLocal("api", []limit.Policy{
		limit.TokenBucket{Rate: 1, Per: time.Second},
	}, nil)
	if err != nil {
		return nil, err
	}
	perIPAndPath := gate.Join(gate.ByIP(nil), gate.ByPath())
	return nethttp.Middleware(gate.RateLimit(limiter, perIPAndPath, nil))(hello), nil
}

// HTTPRate is 100 requests in any minute for each address.
func HTTPRate(rdb *redis.Client, hello http.Handler) (http.Handler, error) {
	limiter, err := limit.New(rdb, "api", []limit.Policy{
		limit.SlidingWindow{Limit: 100, Window: time.Minute},
	}, nil)
	if err != nil {
		return nil, err
	}
	perIP := gate.RateLimit(limiter, gate.ByIP(nil), &gate.RateLimitOptions{
		OnError: func(r gate.Request, err error) {
			slog.WarnContext(r.Context(), "decided without Redis", "err", err)
		},
	})
	return nethttp.Middleware(perIP)(hello), nil
}

// AskBoth lets a request run if the limit that was there before and the new one both admit it.
func AskBoth(before func(http.Handler) http.Handler, limiter *limit.Limiter, hello http.Handler) http.Handler {
	limited := nethttp.Middleware(gate.RateLimit(limiter, gate.ByIP(nil), nil))
	return before(limited(hello))
}
