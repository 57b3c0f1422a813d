package guide

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
)

func tenAMinute(s scene) *limit.Limiter {
	return s.limiter(limit.FixedWindow{Limit: 10, Window: time.Minute})
}

func TestGetOfAMissingKey(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what the very first request is told",
		usual: func(s scene) string {
			return verdict(usualCounter.Run(s.Context(), s.rdb, []string{s.key}, 10).Bool())
		},
		breaks: "error",
		neap: func(s scene) string {
			decision, err := tenAMinute(s).Take(s.Context(), "alice")
			return verdict(decision.Allowed, err)
		},
		holds: "admitted",
	}.run(t)
}

func TestCheckThenAct(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how many of twenty simultaneous requests are admitted, if the limit is ten",
		usual: func(s scene) int {
			s.rdb.AddHook(&meeting{at: "get", of: 20})
			return s.together(20, func() (bool, error) { return AllowByGet(s.Context(), s.rdb, s.key, 10) })
		},
		breaks: 20,
		neap: func(s scene) int {
			limiter := tenAMinute(s)
			return s.together(20, func() (bool, error) {
				decision, err := limiter.Take(s.Context(), "alice")
				return decision.Allowed, err
			})
		},
		holds: 10,
	}.run(t)
}

func TestExpireIsLost(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "keys that never expire, after a process died behind its first command",
		usual: func(s scene) int {
			ctx, die := context.WithCancel(s.Context())
			s.rdb.AddHook(&death{behind: "incr", die: die})
			_, _ = AllowByIncr(ctx, s.rdb, s.key, 10) // the process died between its two commands
			return s.immortal()
		},
		breaks: 1,
		neap: func(s scene) int {
			limiter := tenAMinute(s)
			s.must(limiter.Warm(s.Context())) // so that Take sends EVALSHA at once
			ctx, die := context.WithCancel(s.Context())
			s.rdb.AddHook(&death{behind: "evalsha", die: die})
			_, _ = limiter.Take(ctx, "alice")
			if len(s.keys()) != 1 {
				s.Errorf("a process that died behind its script: got %d keys, want one that was counted", len(s.keys()))
			}
			return s.immortal()
		},
		holds: 0,
	}.run(t)
}

func TestNoTimeToLive(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what a request is told a day after ten others",
		usual: func(s scene) string {
			for range 10 {
				_, err := AllowByGet(s.Context(), s.rdb, s.key, 10)
				s.must(err)
			}
			s.pass(24 * time.Hour)
			return verdict(AllowByGet(s.Context(), s.rdb, s.key, 10))
		},
		breaks: "denied",
		neap: func(s scene) string {
			limiter := tenAMinute(s)
			for range 10 {
				_, err := limiter.Take(s.Context(), "alice")
				s.must(err)
			}
			s.pass(24 * time.Hour)
			decision, err := limiter.Take(s.Context(), "alice")
			return verdict(decision.Allowed, err)
		},
		holds: "admitted",
	}.run(t)
}

// meeting makes callers wait behind a command until all of them have sent it.
type meeting struct {
	at string
	of int

	mu  sync.Mutex
	all chan struct{}
}

func (m *meeting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == m.at {
			<-m.arrive()
		}
		return err
	}
}

func (m *meeting) arrive() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(chan struct{})
	}
	if m.of--; m.of == 0 {
		close(m.all)
	}
	return m.all
}

func (*meeting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*meeting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// death lets a process send one command and none behind it.
type death struct {
	behind string
	die    context.CancelFunc
}

func (d *death) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := next(ctx, cmd)
		if cmd.Name() == d.behind {
			d.die()
		}
		return err
	}
}

func (*death) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*death) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
