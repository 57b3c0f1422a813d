package redis_rate_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/contrib/redis_rate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/ratesuite"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/neaptest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

type suiteLimiter = ratesuite.Limiter[redis_rate.Limit, redis_rate.Result]

// ours is this package, with limiters that newLimiter makes.
func ours(newLimiter func(redis.UniversalClient) suiteLimiter) ratesuite.Package[redis_rate.Limit, redis_rate.Result] {
	return ratesuite.Package[redis_rate.Limit, redis_rate.Result]{
		NewLimiter: newLimiter,
		PerSecond:  redis_rate.PerSecond, PerMinute: redis_rate.PerMinute, PerHour: redis_rate.PerHour,
	}
}

// TestPromisesOfRedisRate has a budget that no busy machine exceeds.
func TestPromisesOfRedisRate(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		patient := func(rdb redis.UniversalClient) suiteLimiter {
			return must(redis_rate.New(rdb, &limit.Options{Budget: 5 * time.Second, Fail: store.FailClosed}))(t)
		}
		ratesuite.Run(t, ours(patient), ratesuite.Place{
			Connect: func(*testing.T) redis.UniversalClient { return rdb },
			Prefix:  prefix, Period: time.Second,
		})
	})
}

// TestPromisesOfRedisRateByTheClock is of limiters that NewLimiter makes. In a bubble no budget ends
// because a machine is busy.
func TestPromisesOfRedisRateByTheClock(t *testing.T) {
	t.Parallel()
	plain := func(rdb redis.UniversalClient) suiteLimiter { return redis_rate.NewLimiter(rdb) }
	ratesuite.Run(t, ours(plain), ratesuite.Place{
		Connect: func(t *testing.T) redis.UniversalClient { return neaptest.New(t).Client() },
		Prefix:  "bubble", Period: time.Second, Bubble: true,
	})
}

// must ends the test if there is an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
