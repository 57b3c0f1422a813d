package guide

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed bucket_usual.lua
	bucketLua string
	//go:embed bucket_float.lua
	floatLua string
)

var (
	usualBucket = redis.NewScript(bucketLua)
	floatBucket = redis.NewScript(floatLua)
)

// AllowByBucket takes a token from a bucket that holds one.
func AllowByBucket(ctx context.Context, rdb redis.Scripter, bucket *redis.Script, key string, perSecond float64, now time.Time) (bool, error) {
	seconds := strconv.FormatFloat(float64(now.UnixMilli())/1000, 'f', 3, 64)
	return bucket.Run(ctx, rdb, []string{key}, perSecond, 1, seconds).Bool()
}
