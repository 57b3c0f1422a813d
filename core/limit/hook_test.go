package limit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// logger is a hook that reads the words of commands on a goroutine of its own, before they are sent and later.
type logger struct {
	t       *testing.T
	reading *sync.WaitGroup
}

func (h logger) read(all ...redis.Cmder) {
	for _, cmd := range all {
		h.reading.Go(func() {
			before := fmt.Sprint(cmd.Args()...)
			time.Sleep(time.Millisecond)
			if after := fmt.Sprint(cmd.Args()...); after != before {
				h.t.Errorf("got the words %s, and then %s, want no change", before, after)
			}
		})
	}
	time.Sleep(time.Millisecond) // callers leave meanwhile
}

func (logger) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h logger) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.read(cmd)
		return next(ctx, cmd)
	}
}

func (h logger) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		h.read(all...)
		return next(ctx, all)
	}
}

// TestAHookMayKeepCommands, while callers leave and memory is used again. The race detector looks on.
func TestAHookMayKeepCommands(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	var reading, asking sync.WaitGroup
	rdb.AddHook(logger{t, &reading})
	l := must(New(storetest.At(t, rdb, redistest.Prefix(t)), "n", []Policy{FixedWindow{Limit: 1 << 30, Window: time.Hour}}, closed(time.Second)))(t)
	for i := range 64 {
		asking.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i+n)%8)*500*time.Microsecond)
				_, _ = l.Take(ctx, fmt.Sprint(i%8))
				cancel()
			}
		})
	}
	asking.Wait()
	reading.Wait()
}
