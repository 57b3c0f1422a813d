package comingfrom

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/fiberlimit"
)

// Fiber runs an order once for each X-Idempotency-Key of an account.
func Fiber(rdb *redis.Client, app *fiber.App, order fiber.Handler) error {
	guard, err := idempotency.New(rdb, "orders", idempotency.Retry{}, &idempotency.Options{Retention: 30 * time.Minute})
	if err != nil {
		return err
	}
	once := gate.Idempotent(guard, gate.ByHeader("X-Account"), &gate.IdempotentOptions{
		Key:      gate.ByHeader("X-Idempotency-Key"),
		Methods:  []string{"POST", "PUT", "PATCH", "DELETE"},
		Optional: true,
		Wait:     10 * time.Second,
	})
	app.Post("/orders", fiberlimit.Middleware(once), order)
	return nil
}

// Once books an event once.
func Once(ctx context.Context, guard *idempotency.Guard, event string, book func(context.Context, string) error) error {
	_, err := guard.Do(ctx, event, func(ctx context.Context) ([]byte, error) {
		return nil, book(ctx, event)
	})
	return err
}

// GuardBoth is for the deployment in between: before is Fiber's middleware, as it was.
func GuardBoth(app *fiber.App, once gate.Gate, before, order fiber.Handler) {
	app.Post("/orders", fiberlimit.Middleware(once), before, order)
}
