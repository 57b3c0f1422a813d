package guide

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
)

// source takes long to answer: a report, or a query over a large table.
type source func(ctx context.Context) (price string, err error)

// PriceByGet asks the source if the price is not in the cache.
func PriceByGet(ctx context.Context, rdb redis.Cmdable, key string, ask source) (string, error) {
	price, err := rdb.Get(ctx, key).Result()
	if !errors.Is(err, redis.Nil) {
		return price, err
	}
	return rebuild(ctx, rdb, key, ask)
}

func rebuild(ctx context.Context, rdb redis.Cmdable, key string, ask source) (string, error) {
	price, err := ask(ctx)
	if err != nil {
		return "", err
	}
	return price, rdb.Set(ctx, key, price, time.Minute).Err()
}

// PriceInTurn lets the callers ask the source one at a time.
func PriceInTurn(ctx context.Context, rdb redis.Cmdable, locks *lock.Locker, key string, ask source) (string, error) {
	price, err := rdb.Get(ctx, key).Result()
	if !errors.Is(err, redis.Nil) {
		return price, err
	}
	err = locks.Do(ctx, key, func(ctx context.Context) (err error) {
		price, err = rebuild(ctx, rdb, key, ask)
		return err
	})
	return price, err
}

// PriceByOne lets one caller ask the source. The others take that caller's answer.
func PriceByOne(ctx context.Context, rdb redis.Cmdable, locks *lock.Locker, key string, ask source) (string, error) {
	price, err := rdb.Get(ctx, key).Result()
	if !errors.Is(err, redis.Nil) {
		return price, err
	}
	err = locks.Do(ctx, key, func(ctx context.Context) (err error) {
		price, err = PriceByGet(ctx, rdb, key, ask) // looks again
		return err
	})
	return price, err
}

// SetPrice changes the price in the source, and then deletes it from the cache.
func SetPrice(ctx context.Context, rdb redis.Cmdable, key string, change func()) error {
	change()
	return rdb.Del(ctx, key).Err()
}
