package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestThePageTellsWhenTheBreakerOpens holds docs/operations.md to the code.
func TestThePageTellsWhenTheBreakerOpens(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("if %d calls in a row fail, or %g %% of at least %d calls, within %v (%d budgets of %v) and for at least %v (%d budgets). "+
		"While it is open, one request asks Redis every %v",
		store.TripInARow, store.TripRatio*100, store.TripOf, store.TripBudgets*limit.DefaultBudget, store.TripBudgets, limit.DefaultBudget,
		store.LeastBudgets*limit.DefaultBudget, store.LeastBudgets, store.OpenFor)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/operations.md: got no such sentence, want: %s", want)
	}
}

// hesitant fails at once while it is told to.
type hesitant struct{ fails atomic.Bool }

func (h *hesitant) Process(_ context.Context, cmd redis.Cmder) error {
	if !h.fails.Load() {
		cmd.(interface{ SetVal(val any) }).SetVal(int64(1))
		return nil
	}
	redistest.Write(cmd)
	err := errors.New("a stumble")
	cmd.SetErr(err)
	return err
}

// TestAStumbleOpensNothing: if all callers fail together for a moment, that is not an
// outage. If they go on failing, it is.
func TestAStumbleOpensNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb hesitant
		l := aLimit(t, &rdb)
		ask := func(n int) {
			for range n {
				if _, err := l.Take(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
			}
		}
		ask(10)
		for range 3 {
			rdb.fails.Store(true)
			ask(300)
			time.Sleep(store.LeastBudgets*limit.DefaultBudget - time.Millisecond)
			ask(300)
			if l.Stats().Open {
				t.Fatal("600 failures within four budgets: got an open breaker, want it closed")
			}
			rdb.fails.Store(false)
			ask(300)
			time.Sleep(store.TripBudgets * limit.DefaultBudget)
		}
		rdb.fails.Store(true)
		ask(store.TripInARow - 1)
		time.Sleep(store.LeastBudgets * limit.DefaultBudget)
		if ask(0); l.Stats().Open {
			t.Fatalf("%d failures: got an open breaker, want it closed", store.TripInARow-1)
		}
		if ask(1); !l.Stats().Open {
			t.Fatalf("%d failures in four budgets: got a closed breaker, want it open", store.TripInARow)
		}
		if d, err := l.Take(t.Context(), "s"); err != nil || !errors.Is(d.Cause, script.ErrNotExecuted) {
			t.Errorf("a call that is not sent: got %+v, %v, want the Cause ErrNotExecuted", d, err)
		}
	})
}

// TestAMostlyFailingRedisIsLeft: a Redis that answers every fifth call opens the breaker,
// and one that answers every fourth does not.
func TestAMostlyFailingRedisIsLeft(t *testing.T) {
	t.Parallel()
	for every, want := range map[int]bool{5: true, 4: false} {
		synctest.Test(t, func(t *testing.T) {
			var rdb hesitant
			l := aLimit(t, &rdb)
			for i := range 200 {
				rdb.fails.Store(i%every != 0)
				if _, err := l.Take(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				if l.Stats().Open {
					if i < store.TripOf-1 {
						t.Errorf("the breaker: got it open after %d calls, want at least %d", i+1, store.TripOf)
					}
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if got := l.Stats().Open; got != want {
				t.Errorf("a Redis that answers every %dth call: got open %v, want %v", every, got, want)
			}
		})
	}
}

// saying answers every call with an error of Redis, and counts the calls.
type saying struct {
	text  string
	calls int
}

func (s *saying) Process(_ context.Context, cmd redis.Cmder) error {
	s.calls++
	redistest.Write(cmd)
	err := redisError(s.text)
	cmd.SetErr(err)
	return err
}

// redisError is an error with which Redis answers.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// TestWhatRedisRefusesOpensNothing, because a refusal is an answer. On a full server,
// refused calls must not keep calls that end or take back something from trying.
func TestWhatRedisRefusesOpensNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"NOPERM User neap has no permissions to run the 'evalsha' command",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"WRONGTYPE Operation against a key holding the wrong kind of value",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"MISCONF Redis is configured to save RDB snapshots, but cannot now.",
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
		"CLUSTERDOWN The cluster is down",
	} {
		synctest.Test(t, func(t *testing.T) {
			rdb := saying{text: text}
			l := aLimit(t, &rdb)
			const calls = 2 * store.TripOf
			for range calls {
				if d, err := l.Take(t.Context(), "s"); err != nil || !d.Degraded {
					t.Fatalf("a take that Redis refuses: got %+v, %v, want it degraded", d, err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			if l.Stats().Open || rdb.calls < calls {
				t.Errorf("%s: got open %v and %d calls sent, want false and at least %d",
					text, l.Stats().Open, rdb.calls, calls)
			}
		})
	}
}

// mute never answers.
type mute struct{ calls atomic.Int64 }

func (m *mute) Process(ctx context.Context, cmd redis.Cmder) error {
	m.calls.Add(1)
	redistest.Write(cmd)
	<-ctx.Done()
	cmd.SetErr(ctx.Err())
	return ctx.Err()
}

// TestOneProbeAtATime has many callers ask at once when the breaker would try again.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb mute
		l := aLimit(t, &rdb)
		for !l.Stats().Open {
			if _, err := l.Take(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			time.Sleep(store.OpenFor + time.Millisecond)
			before := rdb.calls.Load()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if d, err := l.Take(t.Context(), "s"); err != nil || !d.Degraded {
						t.Errorf("a take: got %+v, %v, want it degraded", d, err)
					}
				})
			}
			wg.Wait()
			if sent := rdb.calls.Load() - before; sent != 1 {
				t.Errorf("while the breaker tries again: got %d calls sent at once, want 1", sent)
			}
		}
	})
}

// TestADeadShardOfARing does not affect the other shards.
func TestADeadShardOfARing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const dead = "127.0.0.2:1"
		m := redistest.Bubble(t)
		ring := redis.NewRing(&redis.RingOptions{
			Addrs:                 map[string]string{"alive": "127.0.0.1:1", "dead": dead},
			HeartbeatFrequency:    time.Hour, // or it would take the dead one out
			ContextTimeoutEnabled: true,
			PoolSize:              10_000, PipelinePoolSize: 10_000, // see redistest.InBubble
			Dialer: func(_ context.Context, _, addr string) (net.Conn, error) {
				if addr == dead {
					return nil, errors.New("nobody there")
				}
				return redistest.DialBubble(m)
			},
		})
		defer func() {
			ring.Close()
			time.Sleep(time.Minute) // its dials that are still tried again
		}()
		l := aLimit(t, ring)
		gone, there := 0, 0
		for i := range 10 * store.TripOf {
			subject := fmt.Sprint("s", i)
			shard, err := ring.GetShardClientForKey("neap:limit:n:{" + subject + "}:window-1000000-1h")
			if err != nil {
				t.Fatal(err)
			}
			d, err := l.Take(t.Context(), subject)
			if err != nil {
				t.Fatal(err)
			}
			if shard.Options().Addr == dead {
				gone++
			} else {
				there++
			}
			if d.Degraded != (shard.Options().Addr == dead) {
				t.Fatalf("%s on %s: got %+v, want degraded %v",
					subject, shard.Options().Addr, d, shard.Options().Addr == dead)
			}
		}
		if !l.Stats().Open || gone < store.TripOf || there < store.TripOf {
			t.Errorf("got %d decisions of the dead shard, %d of the other, %+v, want %d of each and it open",
				gone, there, l.Stats(), store.TripOf)
		}
	})
}

// TestANodeThatLeftIsForgotten: a failover gives its keys to another node, and the old
// node is not asked any more.
func TestANodeThatLeftIsForgotten(t *testing.T) {
	t.Parallel()
	before, after := redis.NewClient(&redis.Options{Addr: "before"}), redis.NewClient(&redis.Options{Addr: "after"})
	defer before.Close()
	defer after.Close()
	synctest.Test(t, func(t *testing.T) {
		var rdb hesitant
		holder := before
		st := storetest.At(t, &rdb, "p")
		st.Follow(func(context.Context, string) (*redis.Client, error) { return holder, nil })
		l := aLimit(t, st)
		rdb.fails.Store(true)
		for range 100 {
			_, _ = l.Take(t.Context(), "s")
			time.Sleep(10 * time.Millisecond)
		}
		if !l.Stats().Open {
			t.Fatal("the breaker after 100 failures: got it closed, want it open")
		}
		time.Sleep(store.Forgotten / 2)
		if !l.Stats().Open {
			t.Error("the breaker after half a minute without a call: got it closed, want it open")
		}
		holder = after
		rdb.fails.Store(false)
		time.Sleep(store.Forgotten / 2)
		if d, err := l.Take(t.Context(), "s"); err != nil || d.Degraded {
			t.Errorf("a take after the failover: got %+v, %v, want a decision by Redis", d, err)
		}
		if l.Stats().Open {
			t.Error("the breaker of a node that left: got it open, want it closed")
		}
		if n := st.Nodes(); n != 1 {
			t.Errorf("nodes: got %d stored, want the one that has the keys", n)
		}
	})
}

// TestAnArgumentThatCannotBeWrittenIsNoOutage: the fault is the caller's.
func TestAnArgumentThatCannotBeWrittenIsNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		t.Cleanup(m.Close)
		var log lines
		st := storetest.Open(t, redistest.BubbleClient(t, m), store.Options{Logger: log.logger()})
		runner := newRunner(t, st)
		for range 3 * store.TripInARow {
			if _, err := runner.Run(t.Context(), one, []string{"k"}, struct{}{}); !errors.Is(err, script.ErrConfiguration) {
				t.Fatalf("a call with an argument that cannot be written: got %v, want ErrConfiguration", err)
			}
			time.Sleep(60 * time.Millisecond)
		}
		if st.BreakerOpen(script.DefaultBudget) {
			t.Error("got an open breaker, want it closed")
		}
		if _, err := runner.Run(t.Context(), one, []string{"k"}); err != nil {
			t.Errorf("a call beside them: got %v, want an answer", err)
		}
		logged(t, &log)
	})
}
