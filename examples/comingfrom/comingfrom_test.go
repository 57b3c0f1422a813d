package comingfrom

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/contrib/redis_rate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/neaptest"
)

var hello = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// inBubble gives a test a Redis on the clock of a bubble, so that no permit comes back while it runs.
func inBubble(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, neaptest.New(t).Client()) })
}

func get(t *testing.T, h http.Handler, path string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Result()
}

func TestRedisRate(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *redis.Client) (bool, error){
		"the call of redis_rate": RedisRate, "the limiter of neap": InsteadOfRedisRate,
	} {
		inBubble(t, func(t *testing.T, rdb *redis.Client) {
			for n := 1; n <= 11; n++ {
				if allowed, err := call(t.Context(), rdb); err != nil || allowed != (n <= 10) {
					t.Errorf("%s, number %d in a second: got %t, %v, want 10 allowed", name, n, allowed, err)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := neaptest.New(t)
		limiter, err := RedisRateWithoutRedis(r.Client())
		if err != nil {
			t.Fatal(err)
		}
		r.Lose()
		if res, err := limiter.Allow(t.Context(), "k", redis_rate.PerSecond(1)); err != nil || res.Allowed != 1 {
			t.Errorf("FailLocal without Redis: got %+v, %v, want a permit", res, err)
		}
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		ulule, err := Ulule(rdb, hello)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 1001 {
			res := get(t, ulule, "/")
			if want := n < 1000; (res.StatusCode == http.StatusOK) != want || res.Header.Get("X-RateLimit-Limit") != "1000" {
				t.Fatalf("request %d of 1000: got %d, %v", n, res.StatusCode, res.Header)
			}
		}
		rate, err := HTTPRate(rdb, hello)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 101 {
			if res := get(t, rate, "/"); (res.StatusCode == http.StatusOK) != (n < 100) {
				t.Fatalf("request %d of 100: got %d", n, res.StatusCode)
			}
		}
		booth, err := Tollbooth(hello)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string][]int{"/a": {200, 429}, "/b": {200, 429}} {
			for n, status := range want {
				if res := get(t, booth, path); res.StatusCode != status {
					t.Errorf("request %d of %s: got %d, want %d", n, path, res.StatusCode, status)
				}
			}
		}
	})
}

// TestAskBoth has each of the two limits deny.
func TestAskBoth(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		limiter, err := limit.New(rdb, "both", []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		denies := false
		before := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if denies {
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
		h := AskBoth(before, limiter, hello)
		for _, want := range []int{200, 200, 429} {
			if res := get(t, h, "/"); res.StatusCode != want {
				t.Errorf("the limit of neap: got %d, want %d", res.StatusCode, want)
			}
		}
		denies = true
		if res := get(t, h, "/"); res.StatusCode != 429 || res.Header.Get("RateLimit") != "" {
			t.Errorf("the limit before: got %d, %v, want its 429 alone", res.StatusCode, res.Header)
		}
	})
}

// mutex is a lock as redsync's.
type mutex chan struct{}

func (m mutex) LockContext(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m mutex) UnlockContext(context.Context) (bool, error) { <-m; return true, nil }

func (m mutex) Release(context.Context) error { <-m; return nil }

// TestLockBoth excludes a process that has one of the two locks alone, whichever it is.
func TestLockBoth(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		locker, err := lock.New(rdb, "orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		m := make(mutex, 1)
		obtain := func(ctx context.Context) (Held, error) { return m, m.LockContext(ctx) }
		for name, both := range map[string]func(ctx context.Context, ship func(context.Context) error) error{
			"LockBoth": func(ctx context.Context, ship func(context.Context) error) error {
				return LockBoth(ctx, m, locker, ship)
			},
			"ObtainBoth": func(ctx context.Context, ship func(context.Context) error) error {
				return ObtainBoth(ctx, obtain, locker, ship)
			},
		} {
			shipped := 0
			err := both(t.Context(), func(ctx context.Context) error {
				shipped++
				if len(m) != 1 {
					t.Errorf("%s: got the lock before free, want it held", name)
				}
				if _, err := locker.Try(ctx, "order-17"); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("%s: the lock of neap: got %v, want ErrHeld", name, err)
				}
				return nil
			})
			if err != nil || shipped != 1 || len(m) != 0 {
				t.Errorf("%s: got %v, %d shipped, and %d locks left; want 1 and none", name, err, shipped, len(m))
			}
			never := func(context.Context) error { t.Errorf("%s: ships beside another holder", name); return nil }
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			m <- struct{}{}
			if err := both(ctx, never); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s while another holds the lock before: got %v, want the deadline", name, err)
			}
			<-m
			cancel()
			held, err := locker.Try(t.Context(), "order-17")
			if err != nil {
				t.Fatal(err)
			}
			if err := both(t.Context(), never); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("%s while another holds the lock of neap: got %v, want ErrHeld", name, err)
			}
			if err := Redislock(t.Context(), locker, never); !errors.Is(err, ErrBusy) {
				t.Errorf("Redislock while another holds the lock: got %v, want ErrBusy", err)
			}
			held.Release(t.Context())
		}
		for name, err := range map[string]error{
			"Redsync":   Redsync(t.Context(), rdb, func(ctx context.Context) error { return ctx.Err() }),
			"Redislock": Redislock(t.Context(), locker, func(ctx context.Context) error { return ctx.Err() }),
		} {
			if err != nil {
				t.Errorf("%s: got %v, want no error", name, err)
			}
		}
		for name, ships := range map[string]func(ship func(context.Context) error) error{
			"Redsync":   func(ship func(context.Context) error) error { return Redsync(t.Context(), rdb, ship) },
			"Redislock": func(ship func(context.Context) error) error { return Redislock(t.Context(), locker, ship) },
		} {
			err := ships(func(ctx context.Context) error {
				_, err := locker.ForceRelease(ctx, "order-17")
				return err
			})
			if !errors.Is(err, lock.ErrLost) {
				t.Errorf("%s: got %v for a lock that was lost, want ErrLost", name, err)
			}
		}
	})
}

// TestFiber sends orders again. bench/comingfrom tests GuardBoth, beside Fiber's own middleware.
func TestFiber(t *testing.T) {
	t.Parallel()
	rdb := redistest.Embedded()
	const key = "00000000-0000-0000-0000-000000000001"
	ran := 0
	order := func(c *fiber.Ctx) error { ran++; return c.SendStatus(fiber.StatusCreated) }
	post := func(app *fiber.App, account, key string) int {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", nil)
		r.Header.Set("X-Account", account)
		if key != "" {
			r.Header.Set("X-Idempotency-Key", key)
		}
		var res *http.Response
		redistest.Await(t, time.Minute, "an answer other than that the machine is too busy", func() (answered bool) {
			var err error
			if res, err = app.Test(r, -1); err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode != http.StatusServiceUnavailable
		})
		return res.StatusCode
	}
	want := func(what string, status, runs int) {
		t.Helper()
		if status != http.StatusCreated || ran != runs {
			t.Errorf("%s: got %d and %d runs, want 201 and %d", what, status, ran, runs)
		}
	}
	now := fiber.New()
	if err := Fiber(rdb, now, order); err != nil {
		t.Fatal(err)
	}
	want("the first", post(now, "17", key), 1)
	want("the same again", post(now, "17", key), 1)
	want("another account", post(now, "18", key), 2)
	want("no key", post(now, "17", ""), 3)
	want("no key again", post(now, "17", ""), 4)
}
