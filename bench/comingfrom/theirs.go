// Package comingfrom is the other side of the pages in docs/coming-from: the calls of other libraries, as
// their documentation has them. A test finds each block of the pages here, so all of them compile.
package comingfrom

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/bsm/redislock"
	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"github.com/go-redis/redis_rate/v10"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/idempotency"
	fiberredis "github.com/gofiber/storage/redis/v3"
	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	sredis "github.com/ulule/limiter/v3/drivers/store/redis"

	neap "github.com/neap-go/neap/contrib/redis_rate"
)

var errBusy = errors.New("the order is being shipped")

func redisRate(ctx context.Context, rdb *redis.Client) (bool, error) {
	limiter := redis_rate.NewLimiter(rdb)
	res, err := limiter.Allow(ctx, "project:123", redis_rate.PerSecond(10))
	if err != nil {
		return false, err
	}
	return res.Allowed > 0, nil
}

func askBoth(ctx context.Context, old *redis_rate.Limiter, limiter *neap.Limiter, key string, limit redis_rate.Limit) (bool, error) {
	before, err := old.Allow(ctx, key, limit)
	if err != nil || before.Allowed == 0 {
		return false, err
	}
	res, err := limiter.Allow(ctx, key, neap.Limit(limit))
	if err != nil {
		return false, err
	}
	return res.Allowed > 0, nil
}

func ulule(rdb *redis.Client, hello http.Handler) (http.Handler, error) {
	store, err := sredis.NewStore(rdb)
	if err != nil {
		return nil, err
	}
	rate := limiter.Rate{Period: time.Hour, Limit: 1000}
	return stdlib.NewMiddleware(limiter.New(store, rate)).Handler(hello), nil
}

func tollBooth(hello http.Handler) http.Handler {
	lmt := tollbooth.NewLimiter(1, nil)
	lmt.SetIPLookup(tollboothlimiter.IPLookup{Name: "RemoteAddr"})
	return tollbooth.HTTPMiddleware(lmt)(hello)
}

func httpRate(rdb *redis.Client, hello http.Handler) http.Handler {
	byPeer := func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		return httprate.CanonicalizeIP(host), err
	}
	perIP := httprate.LimitBy(100, time.Minute, byPeer,
		httprateredis.WithRedisLimitCounter(&httprateredis.Config{Client: rdb}))
	return perIP(hello)
}

func redSync(ctx context.Context, rdb *redis.Client, ship func(context.Context) error) error {
	rs := redsync.New(goredis.NewPool(rdb))
	mutex := rs.NewMutex("order-17")
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(ctx)
	return ship(ctx)
}

func redisLock(ctx context.Context, rdb *redis.Client, ship func(context.Context) error) error {
	locker := redislock.New(rdb)
	held, err := locker.Obtain(ctx, "order-17", 30*time.Second, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return errBusy
	}
	if err != nil {
		return err
	}
	defer held.Release(ctx)
	return ship(ctx)
}

var release = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`)

func setNXLock(ctx context.Context, rdb *redis.Client, ship func(context.Context) error) error {
	token := rand.Text()
	ok, err := rdb.SetNX(ctx, "lock:order-17", token, 30*time.Second).Result()
	if err != nil {
		return err
	}
	if !ok {
		return errBusy
	}
	defer release.Run(context.WithoutCancel(ctx), rdb, []string{"lock:order-17"}, token)
	return ship(ctx)
}

func setNXOnce(ctx context.Context, rdb *redis.Client, event string, book func(context.Context, string) error) error {
	first, err := rdb.SetNX(ctx, "done:"+event, 1, 24*time.Hour).Result()
	if err != nil || !first {
		return err
	}
	return book(ctx, event)
}

func fiberIdempotency(rdb *redis.Client, app *fiber.App, order fiber.Handler) {
	app.Use(idempotency.New(idempotency.Config{
		Storage: fiberredis.NewFromConnection(rdb),
	}))
	app.Post("/orders", order)
}
