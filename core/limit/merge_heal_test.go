package limit_test

import (
	"context"
	"fmt"
	"sync"
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

// TestMergedCallsHeal: a key has lost its time to live, or lives too long, when a merged call is
// the first that finds it. It is healed, and the decisions are those of a key as full as can be.
func TestMergedCallsHeal(t *testing.T) {
	t.Parallel()
	const most = 2002
	for name, c := range map[string]struct {
		policy limit.Policy
		used   int64
		lives  time.Duration // 0 is for ever
		want   int           // how many of eight are granted
	}{
		"bucket for ever":              {limit.TokenBucket{Rate: 1, Per: time.Second, Burst: most}, 1, 0, 0},
		"bucket for long":              {limit.TokenBucket{Rate: 1, Per: time.Second, Burst: most}, 1, 9999 * time.Hour, 0},
		"fast bucket for ever":         {limit.TokenBucket{Rate: 1001, Per: time.Second, Burst: most}, most, 0, 0},
		"fast bucket for long":         {limit.TokenBucket{Rate: 1001, Per: time.Second, Burst: most}, most, 9999 * time.Hour, 0},
		"window for ever":              {limit.FixedWindow{Limit: most, Window: time.Second}, 1, 0, 8},
		"window for long":              {limit.FixedWindow{Limit: most, Window: time.Second}, 1, 9999 * time.Hour, 8},
		"full window for long":         {limit.FixedWindow{Limit: most, Window: time.Second}, most, 9999 * time.Hour, 0},
		"sliding window for ever":      {limit.SlidingWindow{Limit: most, Window: time.Second}, 1, 0, 8},
		"full sliding window for long": {limit.SlidingWindow{Limit: most, Window: time.Second}, most, 9999 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := redistest.Bubble(t)
				admin := redistest.BubbleClient(t, m)
				must(must(limit.New(admin, "merged", []limit.Policy{c.policy}, closed(time.Minute)))(t).TakeN(t.Context(), "s", c.used))(t)
				key := m.Keys()[0]
				must(0, admin.Persist(t.Context(), key).Err())(t)
				if c.lives > 0 {
					must(0, admin.PExpire(t.Context(), key, c.lives).Err())(t)
				}
				first := newHeldFirst()
				rdb := redistest.BubbleClient(t, m)
				rdb.AddHook(first)
				l := must(limit.New(storetest.Open(t, rdb, store.Options{Queue: store.Queued}), "merged", []limit.Policy{c.policy}, closed(time.Minute)))(t)
				var all sync.WaitGroup
				all.Go(func() { must(l.Take(t.Context(), "other"))(t) })
				synctest.Wait() // it is on its way, so that those that follow wait together
				var granted atomic.Int64
				for range 8 {
					all.Go(func() {
						if must(l.Take(t.Context(), "s"))(t).Allowed {
							granted.Add(1)
						}
					})
				}
				synctest.Wait()
				close(first.open)
				all.Wait()
				if granted.Load() != int64(c.want) || first.merged.Load() == 0 {
					t.Errorf("got %d granted in %d merged calls, want %d in one at least", granted.Load(), first.merged.Load(), c.want)
				}
				if left := admin.PTTL(t.Context(), key).Val(); left <= 0 || left > time.Hour {
					t.Errorf("afterwards: got %v to live, want at most an hour", left)
				}
			})
		})
	}
}

// heldFirst is a hook that holds the first command until it is open, and counts merged calls.
type heldFirst struct {
	open   chan struct{}
	begun  atomic.Bool
	merged atomic.Int64
}

func newHeldFirst() *heldFirst { return &heldFirst{open: make(chan struct{})} }

func (*heldFirst) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *heldFirst) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.count(cmd)
		if h.begun.CompareAndSwap(false, true) {
			<-h.open
		}
		return next(ctx, cmd)
	}
}

func (h *heldFirst) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		h.count(all...)
		return next(ctx, all)
	}
}

func (h *heldFirst) count(all ...redis.Cmder) {
	for _, cmd := range all {
		if words := cmd.Args(); fmt.Sprintf("%T", words[len(words)-1]) == "*wire.runCalls" {
			h.merged.Add(1)
		}
	}
}
