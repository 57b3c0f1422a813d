package guide

import (
	"context"
	"crypto/rand"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/store"
)

var usualCount = redis.NewScript(countLua)

//go:embed count_once.lua
var countOnceLua string

var countOnce = redis.NewScript(countOnceLua)

// VisitByScript counts a visit.
func VisitByScript(ctx context.Context, rdb redis.Scripter, key string) (int, error) {
	return usualCount.Run(ctx, rdb, []string{key}, 1, 60_000).Int()
}

// VisitOnce counts a visit under a name of its own.
func VisitOnce(ctx context.Context, rdb redis.Scripter, key string) (int, error) {
	return countOnce.Run(ctx, rdb, []string{key}, rand.Text(), 60_000).Int()
}

// ExportByCounter counts up before it works, and down when it is done.
func ExportByCounter(ctx context.Context, rdb redis.Cmdable, key string, work func()) error {
	n, err := rdb.Incr(ctx, key).Result()
	if err != nil {
		return err
	}
	defer rdb.Decr(context.WithoutCancel(ctx), key)
	if n <= 2 {
		work()
	}
	return nil
}

// Export does the work if fewer than two exports of the tenant are running.
func Export(ctx context.Context, exports *inflight.Limiter, tenant string, work func()) error {
	slot, err := exports.Try(ctx, tenant)
	if err != nil {
		return err
	}
	defer slot.Release(ctx)
	if slot.Allowed {
		work()
	}
	return nil
}

// twoExports are the options of a limit that gives back the slot of a dead process
// after half a minute.
var twoExports = inflight.Options{Fail: store.FailClosed, Lease: 30 * time.Second}
