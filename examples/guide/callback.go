package guide

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
)

const fourDays = 4 * 24 * time.Hour // Stripe sends an event again for three days

// BookIfNew looks whether the event was booked, and books it if not. Its endpoint
// answers 200 for a nil error, and 503 for any other.
func BookIfNew(ctx context.Context, rdb redis.Cmdable, event string, book func() error) error {
	n, err := rdb.Exists(ctx, event).Result()
	if err != nil || n == 1 {
		return err
	}
	if err := book(); err != nil {
		return err
	}
	return rdb.Set(ctx, event, "done", fourDays).Err()
}

// BookMarked marks the event, and then books it.
func BookMarked(ctx context.Context, rdb redis.Cmdable, event string, book func() error) error {
	first, err := rdb.SetNX(ctx, event, "done", fourDays).Result()
	if err != nil || !first {
		return err
	}
	return book()
}

// Booking is neap's endpoint.
func Booking(guard *idempotency.Guard, verify callback.Verify, book func() error) (*callback.Endpoint, error) {
	return callback.New(callback.Stripe(), guard, verify, func(context.Context, *callback.Event) error {
		return book()
	}, nil)
}
