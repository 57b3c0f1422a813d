package store_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// answers is a hook that answers commands in place of the server.
type answers struct{ by atomic.Pointer[func() error] }

func (*answers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *answers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := (*a.by.Load())(); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (a *answers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		if err := (*a.by.Load())(); err != nil {
			for _, cmd := range all {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, all)
	}
}

// TestAnExitLeavesTheBreakerAsItWas: a hook does not return from the one call that an open
// breaker lets through. So the breaker lets another through.
func TestAnExitLeavesTheBreakerAsItWas(t *testing.T) {
	t.Parallel()
	for _, mode := range []store.QueueMode{store.Queued, store.Direct} {
		for how, does := range map[string]func() error{
			"exits":  func() error { runtime.Goexit(); return nil },
			"panics": func() error { panic(errors.New("of a hook")) },
		} {
			synctest.Test(t, func(t *testing.T) {
				m := redistest.Bubble(t)
				rdb := redistest.BubbleClient(t, m)
				defer rdb.Close()
				fine, down := func() error { return nil }, func() error { return io.EOF }
				hook := new(answers)
				hook.by.Store(&fine)
				rdb.AddHook(hook)
				l := aLimitOf(t, storetest.Open(t, rdb, store.Options{Queue: mode}), 1e6, &limit.Options{Fail: store.FailOpen})
				took(t, l)
				hook.by.Store(&down)
				for !l.Stats().Open {
					_, _ = l.Take(t.Context(), "s")
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Second)
				var met atomic.Int64
				bad := func() error { met.Add(1); return does() }
				hook.by.Store(&bad)
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = l.Take(t.Context(), "s")
				}()
				<-done
				hook.by.Store(&fine)
				time.Sleep(time.Second)
				if met.Load() == 0 {
					t.Errorf("%v, %s: got no call that the breaker let through, want one", mode, how)
				}
				if d, err := l.Take(t.Context(), "s"); err != nil || d.Degraded {
					t.Errorf("%v, %s: got %+v, %v after Redis answers again, want a decision of Redis", mode, how, d, err)
				}
				time.Sleep(time.Minute) // what runs in the background
			})
		}
	}
}
