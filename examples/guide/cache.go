package guide

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
)

// source is what takes long to answer: a report, a query over a large table.
type source func(ctx context.Context) (price string, err error)

// PriceByGet asks the source for what is not in the cache.
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

// PriceInTurn has one at a time ask the source.
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

// PriceByOne has one caller ask the source, and the others take what it was told.
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

// SetPrice changes what the source says, and then what the cache does.
func SetPrice(ctx context.Context, rdb redis.Cmdable, key string, change func()) error {
	change()
	return rdb.Del(ctx, key).Err()
}
