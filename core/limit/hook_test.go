package limit_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// logger is a hook that reads the words of commands on a goroutine of its own, while they
// are sent and afterwards. It passes them on when a caller has left, or after a second.
type logger struct {
	t    *testing.T
	open *atomic.Int64 // commands that have not ended, for a batch goes on without its callers
	left chan struct{}
}

// read starts reading. The function that it returns must be called when the commands have
// ended.
func (h logger) read(all ...redis.Cmder) (end func()) {
	h.open.Add(1)
	ended := make(chan struct{})
	var reading sync.WaitGroup
	for _, cmd := range all {
		reading.Go(func() {
			before := fmt.Sprint(cmd.Args()...)
			<-ended
			if after := fmt.Sprint(cmd.Args()...); after != before {
				h.t.Errorf("got the words %s, and then %s, want no change", before, after)
			}
		})
	}
	select {
	case <-h.left:
	case <-time.After(time.Second):
	}
	return func() {
		close(ended)
		reading.Wait()
		h.open.Add(-1)
	}
}

func (logger) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h logger) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer h.read(cmd)()
		return next(ctx, cmd)
	}
}

func (h logger) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		defer h.read(all...)()
		return next(ctx, all)
	}
}

// TestAHookMayKeepCommands while callers leave and memory is reused. The race detector
// checks it.
func TestAHookMayKeepCommands(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	var open atomic.Int64
	var asking sync.WaitGroup
	left := make(chan struct{}, 1)
	rdb.AddHook(logger{t, &open, left})
	l := must(limit.New(storetest.At(t, rdb, redistest.Prefix(t)), "n", []limit.Policy{limit.FixedWindow{Limit: 1 << 30, Window: time.Hour}}, closed(time.Second)))(t)
	for i := range 64 {
		asking.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i+n)%8)*500*time.Microsecond)
				if _, err := l.Take(ctx, fmt.Sprint(i%8)); err != nil {
					select {
					case left <- struct{}{}:
					default:
					}
				}
				cancel()
			}
		})
	}
	asking.Wait()
	redistest.Await(t, time.Minute, "the commands to end", func() bool { return open.Load() == 0 })
}
