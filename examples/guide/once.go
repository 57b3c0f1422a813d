package guide

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
)

// RunByLock runs a job while no other process runs it.
func RunByLock(ctx context.Context, rdb redis.Cmdable, key string, job func() error) error {
	got, err := LockBySet(ctx, rdb, key, "me")
	if err != nil || !got {
		return err
	}
	defer func() { _ = UnlockByDel(ctx, rdb, key) }()
	return job()
}

// RunByMark runs a job if no process has begun it in this minute.
func RunByMark(ctx context.Context, rdb redis.Cmdable, key string, now time.Time, job func() error) error {
	key += now.Truncate(time.Minute).UTC().Format(":15:04")
	got, err := rdb.SetNX(ctx, key, "begun", time.Hour).Result()
	if err != nil || !got {
		return err
	}
	return job()
}

// RunOnce runs the job of a tick in one of the processes that call it.
func RunOnce(ctx context.Context, locker *lock.Locker, tick time.Time, job func() error) error {
	_, err := locker.Once(ctx, "report", tick, lock.Again, func(context.Context) error { return job() })
	return err
}
