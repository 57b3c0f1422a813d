package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// tutorials are limiters as they are shown everywhere, written down as they are
// usually meant.
func tutorials() []contestant {
	return []contestant{
		{name: "tutorial HMGET/HMSET bucket", kind: tutorial, group: bucket,
			limiter: scripted(hashBucket, bucket, hashBucketArgs),
			what:    "tokens in floats, by the caller's clock; a script on a hash that never expires"},
		{name: "tutorial GET/INCR/SETEX window", kind: tutorial, group: window, limiter: openCounter,
			what: "fixed window: reads, compares, then increments"},
		{name: "tutorial sorted-set log", kind: tutorial, group: history, limiter: scripted(setLog, history, setLogArgs),
			what: "a member for each request, by the caller's clock; a script"},
		{name: "tutorial list log", kind: tutorial, group: history, limiter: scripted(listLog, history, listLogArgs),
			what: "the times of the last requests, by the caller's clock; a script on a list"},
	}
}

var hashBucket = redis.NewScript(`
local rate, burst, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(state[1]) or burst
local at = tonumber(state[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate)
local allowed = 0
if tokens >= 1 then
  tokens = tokens - 1
  allowed = 1
end
redis.call('HMSET', KEYS[1], 'tokens', tokens, 'at', now)
return allowed
`)

func hashBucketArgs(q quota, now time.Time) []any {
	return []any{
		float64(q.refill) / q.window.Seconds(), q.limit,
		strconv.FormatFloat(float64(now.UnixMicro())/1e6, 'f', 6, 64),
	}
}

var setLog = redis.NewScript(`
local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
if redis.call('ZCARD', KEYS[1]) >= limit then
  return 0
end
redis.call('ZADD', KEYS[1], now, ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
`)

func setLogArgs(q quota, now time.Time) []any {
	member := strconv.FormatInt(now.UnixMicro(), 10) + "-" + strconv.FormatUint(uint64(rand.Uint32()), 36)
	return []any{now.UnixMicro(), q.window.Microseconds(), q.limit, member, q.window.Milliseconds()}
}

var listLog = redis.NewScript(`
local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('LLEN', KEYS[1]) >= limit then
  if now - tonumber(redis.call('LINDEX', KEYS[1], -1)) < window then
    return 0
  end
  redis.call('RPOP', KEYS[1])
end
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
`)

func listLogArgs(q quota, now time.Time) []any {
	return []any{now.UnixMicro(), q.window.Microseconds(), q.limit, q.window.Milliseconds()}
}

func scripted(
	script *redis.Script, algorithm string, args func(quota, time.Time) []any,
) func(context.Context, *env, workload) (take, error) {
	return func(_ context.Context, e *env, w workload) (take, error) {
		q := w.quota(algorithm)
		return func(ctx context.Context, key string) (bool, error) {
			n, err := script.Run(ctx, e.rdb, []string{"limit:" + key}, args(q, time.Now())...).Int()
			return n == 1, err
		}, nil
	}
}

func openCounter(_ context.Context, e *env, w workload) (take, error) {
	q := w.quota(window)
	return func(ctx context.Context, key string) (bool, error) {
		key = "limit:" + key
		n, err := e.rdb.Get(ctx, key).Int64()
		switch {
		case errors.Is(err, redis.Nil):
			return true, e.rdb.SetEx(ctx, key, 1, q.window).Err()
		case err != nil:
			return false, err
		case n >= q.limit:
			return false, nil
		}
		return true, e.rdb.Incr(ctx, key).Err()
	}, nil
}
