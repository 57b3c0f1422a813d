package comingfrom

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
)

// ErrBusy says that another process ships the order.
var ErrBusy = errors.New("the order is being shipped")

// Redsync waits for a lock, and works while it is held.
func Redsync(ctx context.Context, rdb *redis.Client, ship func(context.Context) error) error {
	locker, err := lock.New(rdb, "orders", &lock.Options{Lease: 8 * time.Second, Wait: 5 * time.Second})
	if err != nil {
		return err
	}
	return locker.Do(ctx, "order-17", ship)
}

// Redislock asks once, and says at the end whether the lock was held all the time.
func Redislock(ctx context.Context, locker *lock.Locker, ship func(context.Context) error) (err error) {
	held, err := locker.Try(ctx, "order-17")
	if errors.Is(err, lock.ErrHeld) {
		return ErrBusy
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release(ctx)) }() // err is a named result
	return ship(held.Context())
}

// Mutex is a lock of the library that was there before: a *redsync.Mutex is one.
type Mutex interface {
	LockContext(ctx context.Context) error
	UnlockContext(ctx context.Context) (bool, error)
}

// LockBoth is for the deployment between redsync and neap.
func LockBoth(ctx context.Context, before Mutex, locker *lock.Locker, ship func(context.Context) error) error {
	if err := before.LockContext(ctx); err != nil {
		return err
	}
	defer before.UnlockContext(context.WithoutCancel(ctx)) //nolint:errcheck // the lock of neap tells whether it was held
	return locker.Do(ctx, "order-17", ship)
}

// Held is a lock that the library before has granted: a *redislock.Lock is one.
type Held interface {
	Release(ctx context.Context) error
}

// ObtainBoth is for the deployment between redislock and neap. obtain is the call that was there before.
func ObtainBoth(ctx context.Context, obtain func(context.Context) (Held, error), locker *lock.Locker, ship func(context.Context) error) error {
	before, err := obtain(ctx)
	if err != nil {
		return err
	}
	defer before.Release(context.WithoutCancel(ctx)) //nolint:errcheck // the lock of neap tells whether it was held
	return locker.Do(ctx, "order-17", ship)
}
