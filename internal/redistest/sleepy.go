package redistest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sleepy is a hook that has a client return its first answer so much later, as one
// does whose process slept.
type Sleepy struct {
	For  time.Duration
	done atomic.Bool
}

// DialHook changes nothing.
func (*Sleepy) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing.
func (*Sleepy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook sleeps once.
func (s *Sleepy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if s.done.CompareAndSwap(false, true) {
			<-time.After(s.For)
		}
		return err
	}
}
