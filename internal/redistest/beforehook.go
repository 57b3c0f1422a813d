package redistest

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// BeforeHook is called before each command is sent, also before those of a pipeline.
type BeforeHook func(redis.Cmder)

// DialHook makes it a [redis.Hook].
func (BeforeHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook makes it a [redis.Hook].
func (h BeforeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook makes it a [redis.Hook].
func (h BeforeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		for _, cmd := range all {
			h(cmd)
		}
		return next(ctx, all)
	}
}
