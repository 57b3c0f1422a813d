package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
)

// cache keeps what a slow source says. A value is fresh for a while, and kept
// for longer, so that there is an old one while a new one is made.
type cache struct {
	rdb         redis.UniversalClient
	locks       *lock.Locker
	source      func(ctx context.Context, name string) (string, error)
	fresh, kept time.Duration
}

func valueOf(name string) string { return "cache:{" + name + "}:value" }

func freshOf(name string) string { return "cache:{" + name + "}:fresh" }

func (c *cache) get(ctx context.Context, name string) (string, error) {
	value, found, fresh, err := c.read(ctx, name)
	if err != nil || fresh {
		return value, err
	}
	var held *lock.Lock
	if found {
		held, err = c.locks.Try(ctx, name)
		if err != nil { // another request rebuilds it, or Redis gives no lock: the old value will do
			return value, nil
		}
	} else {
		held, err = c.locks.Acquire(ctx, name)
		if err != nil {
			return "", err
		}
	}
	defer held.Release(ctx)

	value, found, fresh, err = c.read(ctx, name) // another may have rebuilt it since
	if err != nil || fresh {
		return value, err
	}
	ctx = held.Context() // when the lock is lost, no write begins
	made, err := c.source(ctx, name)
	if err != nil && found {
		return value, nil // old, and asked for anew by the next request
	}
	if err != nil {
		return "", err
	}
	return made, c.write(ctx, name, made)
}

// read is one round trip.
func (c *cache) read(ctx context.Context, name string) (value string, found, fresh bool, err error) {
	both, err := c.rdb.MGet(ctx, valueOf(name), freshOf(name)).Result()
	if err != nil {
		return "", false, false, err
	}
	value, found = both[0].(string)
	return value, found, found && both[1] != nil, nil
}

func (c *cache) write(ctx context.Context, name, value string) error {
	_, err := c.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, valueOf(name), value, c.kept)
		p.Set(ctx, freshOf(name), 1, c.fresh)
		return nil
	})
	return err
}
