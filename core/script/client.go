package script

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/call"
)

// Client is the least that a script needs to run. Every go-redis client has it: Client,
// ClusterClient and Ring, and the AutoPipeliner of the first two, which sends the calls
// of many goroutines together. (A Ring makes no AutoPipeliner.) So has a store.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// ErrClient reports a client that cannot be used for decisions. The error that wraps it
// says why.
var ErrClient = call.ErrClient
