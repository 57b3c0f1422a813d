package limit

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

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

// TestThePageTellsWhenTheBreakerOpens holds docs/operations.md to the code.
func TestThePageTellsWhenTheBreakerOpens(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("after %d failures in a row, or when of %d calls or more %g %% failed, within %v and not before %v "+
		"(%d and %d budgets of %v). Nothing is sent then, but every %v one request asks",
		tripInARow, tripOf, tripRatio*100, tripBudgets*DefaultBudget, hiccup*DefaultBudget,
		tripBudgets, hiccup, DefaultBudget, openFor)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/operations.md does not say: %s", want)
	}
}

// hesitant fails while it is told to, as soon as it is called.
type hesitant struct{ fails atomic.Bool }

func (h *hesitant) Process(_ context.Context, cmd redis.Cmder) error {
	if !h.fails.Load() {
		cmd.(interface{ SetVal(val any) }).SetVal(int64(1))
		return nil
	}
	cmd.Args() // as one that was written
	err := errors.New("a stumble")
	cmd.SetErr(err)
	return err
}

// TestAStumbleOpensNothing has all callers of a moment fail together, which
// tells of no outage, and go on failing, which does.
func TestAStumbleOpensNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb hesitant
		l, err := New(&rdb, "stumble", []Policy{FixedWindow{Limit: 1e6, Window: time.Hour}}, nil)
		if err != nil {
			t.Fatal(err)
		}
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
			time.Sleep(hiccup*DefaultBudget - time.Millisecond)
			ask(300)
			if l.Stats().Open {
				t.Fatal("600 failures within four budgets opened the breaker")
			}
			rdb.fails.Store(false)
			ask(300)
			time.Sleep(tripBudgets * DefaultBudget)
		}
		rdb.fails.Store(true)
		ask(tripInARow - 1)
		time.Sleep(hiccup * DefaultBudget)
		if ask(0); l.Stats().Open {
			t.Fatal("19 failures opened the breaker")
		}
		if ask(1); !l.Stats().Open {
			t.Fatal("20 failures in four budgets did not open the breaker")
		}
		if d, err := l.Take(t.Context(), "s"); err != nil || !errors.Is(d.Cause, script.ErrNotExecuted) {
			t.Errorf("a call that is not sent: %+v, %v", d, err)
		}
	})
}

// TestAMostlyFailingRedisIsLeft: it answers every fifth call, and then every
// fourth.
func TestAMostlyFailingRedisIsLeft(t *testing.T) {
	t.Parallel()
	for every, want := range map[int]bool{5: true, 4: false} {
		synctest.Test(t, func(t *testing.T) {
			var rdb hesitant
			l, err := New(&rdb, "mostly", []Policy{FixedWindow{Limit: 1e6, Window: time.Hour}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 200 {
				rdb.fails.Store(i%every != 0)
				if _, err := l.Take(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				if l.Stats().Open {
					if i < tripOf-1 {
						t.Errorf("%d calls opened the breaker", i+1)
					}
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if got := l.Stats().Open; got != want {
				t.Errorf("that answers every %dth call: open is %v", every, got)
			}
		})
	}
}

// saying answers every call with an error of Redis, and counts them.
type saying struct {
	text  string
	calls int
}

func (s *saying) Process(_ context.Context, cmd redis.Cmder) error {
	s.calls++
	cmd.Args() // as one that was written
	err := redisError(s.text)
	cmd.SetErr(err)
	return err
}

// TestWhatRedisRefusesOpensNothing: the next call may be answered. What Redis
// turns away because it cannot decide now is an outage.
func TestWhatRedisRefusesOpensNothing(t *testing.T) {
	t.Parallel()
	for text, opens := range map[string]bool{
		"NOPERM User neap has no permissions to run the 'evalsha' command":   false,
		"WRONGPASS invalid username-password pair or user is disabled.":      false,
		"WRONGTYPE Operation against a key holding the wrong kind of value":  false,
		"OOM command not allowed when used memory > 'maxmemory'.":            true,
		"MISCONF Redis is configured to save RDB snapshots, but cannot now.": true,
	} {
		synctest.Test(t, func(t *testing.T) {
			rdb := saying{text: text}
			l, err := New(&rdb, "refused", []Policy{FixedWindow{Limit: 1e6, Window: time.Hour}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			const calls = 2 * tripOf
			for range calls {
				if d, err := l.Take(t.Context(), "s"); err != nil || !d.Degraded {
					t.Fatalf("%+v, %v", d, err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			if l.Stats().Open != opens || (rdb.calls == calls) == opens {
				t.Errorf("%s: open is %v, and %d of %d calls were sent", text, l.Stats().Open, rdb.calls, calls)
			}
		})
	}
}

// mute never answers.
type mute struct{ calls atomic.Int64 }

func (m *mute) Process(ctx context.Context, cmd redis.Cmder) error {
	m.calls.Add(1)
	cmd.Args() // as one that was written
	<-ctx.Done()
	cmd.SetErr(ctx.Err())
	return ctx.Err()
}

// TestCancellationIsNoOutage has callers give up on a server that does not
// answer: early, which says nothing of Redis, and late, which does.
func TestCancellationIsNoOutage(t *testing.T) {
	t.Parallel()
	for patience, opens := range map[time.Duration]bool{DefaultBudget/2 - 1: false, DefaultBudget / 2: true} {
		synctest.Test(t, func(t *testing.T) {
			l, err := New(&mute{}, "canceled", []Policy{FixedWindow{Limit: 5, Window: time.Hour}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 * tripOf {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				d, err := l.Take(ctx, "s")
				cancel()
				if l.Stats().Open {
					break
				}
				if !errors.Is(err, context.DeadlineExceeded) || d.Degraded {
					t.Fatalf("%+v, %v", d, err)
				}
			}
			if s := l.Stats(); s.Open != opens || s.Failed != 0 || s.Degraded != 0 || s.Canceled == 0 {
				t.Errorf("who waits for %v: %+v", patience, s)
			}
		})
	}
}

// TestOneProbeAtATime has many ask at once when the breaker would try again.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb mute
		l, err := New(&rdb, "probe", []Policy{FixedWindow{Limit: 5, Window: time.Hour}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for !l.Stats().Open {
			if _, err := l.Take(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			time.Sleep(openFor + time.Millisecond)
			before := rdb.calls.Load()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if d, err := l.Take(t.Context(), "s"); err != nil || !d.Degraded {
						t.Errorf("%+v, %v", d, err)
					}
				})
			}
			wg.Wait()
			if sent := rdb.calls.Load() - before; sent != 1 {
				t.Errorf("%d calls were sent at once", sent)
			}
		}
	})
}

// TestADeadShardOfARing takes no other along.
func TestADeadShardOfARing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const dead = "127.0.0.2:1"
		m := bubble(t)
		ring := redis.NewRing(&redis.RingOptions{
			Addrs:                 map[string]string{"alive": "127.0.0.1:1", "dead": dead},
			HeartbeatFrequency:    time.Hour, // or it would take the dead one out
			ContextTimeoutEnabled: true,
			Dialer: func(_ context.Context, _, addr string) (net.Conn, error) {
				if addr == dead {
					return nil, errors.New("nobody there")
				}
				return m.Dial()
			},
		})
		defer func() {
			ring.Close()
			time.Sleep(time.Minute) // its dials that are still tried again
		}()
		l, err := New(ring, "ring", []Policy{FixedWindow{Limit: 1e6, Window: time.Hour}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		gone, there := 0, 0
		for i := range 10 * tripOf {
			subject := fmt.Sprint("s", i)
			shard, err := ring.GetShardClientForKey(l.remote.keys(l, subject, nil)[0])
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
				t.Fatalf("%s on %s: %+v", subject, shard.Options().Addr, d)
			}
		}
		if !l.Stats().Open || gone < tripOf || there < tripOf {
			t.Errorf("%d decisions of the dead shard and %d of the other: %+v", gone, there, l.Stats())
		}
	})
}

// TestANodeThatLeftIsForgotten: a failover gives its keys to another node, and
// nobody asks the old one any more.
func TestANodeThatLeftIsForgotten(t *testing.T) {
	t.Parallel()
	before, after := redis.NewClient(&redis.Options{Addr: "before"}), redis.NewClient(&redis.Options{Addr: "after"})
	defer before.Close()
	defer after.Close()
	synctest.Test(t, func(t *testing.T) {
		var rdb hesitant
		l, err := New(&rdb, "left", []Policy{FixedWindow{Limit: 1e6, Window: time.Hour}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		holder := before
		door := l.remote.door
		door.nodeOf = func(context.Context, string) (*redis.Client, error) { return holder, nil }
		door.known.Store(true)
		rdb.fails.Store(true)
		for range 100 {
			_, _ = l.Take(t.Context(), "s")
			time.Sleep(10 * time.Millisecond)
		}
		if !l.Stats().Open {
			t.Fatal("the breaker is not open")
		}
		time.Sleep(forgotten / 2)
		if !l.Stats().Open {
			t.Error("a breaker that nobody tried for half a minute is not open any more")
		}
		holder = after
		rdb.fails.Store(false)
		time.Sleep(forgotten / 2)
		if d, err := l.Take(t.Context(), "s"); err != nil || d.Degraded {
			t.Errorf("%+v, %v", d, err)
		}
		if l.Stats().Open {
			t.Error("the breaker of a node that left is open for ever")
		}
	})
}
