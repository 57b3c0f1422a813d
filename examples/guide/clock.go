package guide

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// AllowInMinute admits ten requests in each minute of the caller's clock.
func AllowInMinute(ctx context.Context, rdb redis.Scripter, key string, now time.Time) (bool, error) {
	key += ":" + strconv.FormatInt(now.Unix()/60, 10)
	return AllowInWindow(ctx, rdb, window, key, time.Minute)
}
