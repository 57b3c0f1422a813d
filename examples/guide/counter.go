package guide

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed counter_usual.lua
var counterLua string

var usualCounter = redis.NewScript(counterLua)

// AllowByGet reads, compares, and then counts.
func AllowByGet(ctx context.Context, rdb redis.Cmdable, key string, limit int) (bool, error) {
	n, err := rdb.Get(ctx, key).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	if n >= limit {
		return false, nil
	}
	return true, rdb.Incr(ctx, key).Err()
}

// AllowByIncr counts first. The first caller starts the minute.
func AllowByIncr(ctx context.Context, rdb redis.Cmdable, key string, limit int64) (bool, error) {
	n, err := rdb.Incr(ctx, key).Result()
	if err != nil {
		return false, err
	}
	if n == 1 {
		if err := rdb.Expire(ctx, key, time.Minute).Err(); err != nil {
			return false, err
		}
	}
	return n <= limit, nil
}
