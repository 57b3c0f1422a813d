package usecases

import (
	"context"
	"log/slog"
	"time"

	"github.com/neap-go/neap/core/lock"
)

// SendOutbox lets one process send what all processes put into the outbox, until ctx
// ends.
func SendOutbox(ctx context.Context, roles *lock.Locker, send func(ctx context.Context, fence int64) error) error {
	return roles.Lead(ctx, "outbox", func(ctx context.Context) error {
		held, _ := lock.FromContext(ctx)
		for {
			if err := send(ctx, held.Fence()); err != nil {
				slog.ErrorContext(ctx, "the outbox waits", "err", err)
			}
			select {
			case <-ctx.Done(): // lost, so that another process sends, or shut down
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
	})
}
