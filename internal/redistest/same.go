package redistest

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// SameClient answers every command with the same reply, and asks no server.
type SameClient struct{ Reply any }

// Process answers.
func (c SameClient) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.(interface{ SetVal(val any) }).SetVal(c.Reply)
	return nil
}
