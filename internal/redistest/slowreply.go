package redistest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// SlowReply is a hook that delays the first answer of a client, as if its process had
// slept.
type SlowReply struct {
	For  time.Duration
	done atomic.Bool
}

// DialHook changes nothing.
func (*SlowReply) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing.
func (*SlowReply) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook sleeps once.
func (s *SlowReply) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if s.done.CompareAndSwap(false, true) {
			<-time.After(s.For)
		}
		return err
	}
}
