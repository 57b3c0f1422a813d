package guide

import (
	"context"
	"crypto/rand"
	_ "embed"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed sliding_zset_usual.lua
	zsetLua string
	//go:embed sliding_list_usual.lua
	listLua string
)

var (
	zsetLog = redis.NewScript(zsetLua)
	listLog = redis.NewScript(listLua)
)

// AllowByLog admits ten requests in any minute of the caller's clock.
func AllowByLog(ctx context.Context, rdb redis.Scripter, log *redis.Script, key string, now time.Time) (bool, error) {
	return log.Run(ctx, rdb, []string{key}, now.UnixMilli(), time.Minute.Milliseconds(), 10).Bool()
}

// AllowByMulti keeps a sorted set without a script.
func AllowByMulti(ctx context.Context, rdb redis.Cmdable, key string, now time.Time) (bool, error) {
	var size *redis.IntCmd
	_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(now.Add(-time.Minute).UnixMilli(), 10))
		p.ZAdd(ctx, key, redis.Z{Score: float64(now.UnixMilli()), Member: rand.Text()})
		size = p.ZCard(ctx, key)
		p.PExpire(ctx, key, time.Minute)
		return nil
	})
	return size.Val() <= 10, err
}
