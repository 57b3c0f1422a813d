package redistest

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ExitHook is a hook that ends the goroutine of one command (runtime.Goexit) when it is
// armed: before the command is sent, or after its answer. With Stays it stays armed.
type ExitHook struct {
	Armed        atomic.Bool
	After, Stays bool
}

// DialHook makes it a [redis.Hook].
func (*ExitHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook makes it a [redis.Hook].
func (*ExitHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook makes it a [redis.Hook].
func (h *ExitHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !h.Armed.CompareAndSwap(true, h.Stays) {
			return next(ctx, cmd)
		}
		if h.After {
			_ = next(ctx, cmd)
		}
		runtime.Goexit()
		return nil
	}
}
