package guide

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
)

var (
	//go:embed lock_enter.lua
	enterLua string
	//go:embed lock_leave.lua
	leaveLua string
)

var (
	enter = redis.NewScript(enterLua)
	leave = redis.NewScript(leaveLua)
)

// LockByExpire sets the key, and then its time to live.
func LockByExpire(ctx context.Context, rdb redis.Cmdable, key string) (bool, error) {
	got, err := rdb.SetNX(ctx, key, "locked", 0).Result()
	if err != nil || !got {
		return false, err
	}
	return true, rdb.Expire(ctx, key, 30*time.Second).Err()
}

// LockBySet does both at once.
func LockBySet(ctx context.Context, rdb redis.Cmdable, key, token string) (bool, error) {
	return rdb.SetNX(ctx, key, token, 30*time.Second).Result()
}

// UnlockByDel does not ask whose lock it is.
func UnlockByDel(ctx context.Context, rdb redis.Cmdable, key string) error {
	return rdb.Del(ctx, key).Err()
}

// LockBySpinning asks again and again until it gets the lock.
func LockBySpinning(ctx context.Context, rdb redis.Cmdable, key, token string) error {
	for {
		got, err := LockBySet(ctx, rdb, key, token)
		if err != nil || got {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Ship ships an order, one caller at a time.
func Ship(ctx context.Context, locker *lock.Locker, order string, write func(ctx context.Context, fence int64) error) error {
	return locker.Do(ctx, order, func(ctx context.Context) error {
		held, _ := lock.FromContext(ctx)
		return write(ctx, held.Fence()) // ctx ends when the lock is lost
	})
}
