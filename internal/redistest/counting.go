package redistest

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// CountingHook counts the scripts that are sent, and the round trips that they take.
type CountingHook struct{ Scripts, Trips atomic.Int64 }

// Counted is a client of a miniredis in a bubble, and the count of the scripts that it sends.
func Counted(tb testing.TB) (*redis.Client, *atomic.Int64) {
	tb.Helper()
	rdb, hook := BubbleClient(tb, Bubble(tb)), new(CountingHook)
	rdb.AddHook(hook)
	return rdb, &hook.Scripts
}

// DialHook makes it a [redis.Hook].
func (*CountingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook makes it a [redis.Hook].
func (h *CountingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		h.count(all...)
		return next(ctx, all)
	}
}

// ProcessHook makes it a [redis.Hook].
func (h *CountingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.count(cmd)
		return next(ctx, cmd)
	}
}

func (h *CountingHook) count(all ...redis.Cmder) {
	scripts := int64(0)
	for _, cmd := range all {
		if strings.HasPrefix(cmd.Name(), "eval") {
			scripts++
		}
	}
	h.Scripts.Add(scripts)
	h.Trips.Add(min(scripts, 1))
}

// HeapInUse is what the process has on its heap, without garbage.
func HeapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
