package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// opensBreaker returns a function whose calls have opened their breaker.
func opensBreaker(t *testing.T, rdb *late, on *onStore) (ask func() error) {
	t.Helper()
	ask = caller(t, on.store, one, "k")
	took(t, on.Limiter)
	rdb.by.Store(int64(time.Hour))
	for range store.TripInARow {
		_ = ask()
	}
	return ask
}

// TestAnIdleBreakerDoesNotKeepAnOutageOpen: scripts with another budget opened a breaker
// and then stopped. Limits are answered, so a minute later the server is back, and the
// next outage is logged again.
func TestAnIdleBreakerDoesNotKeepAnOutageOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, on, log := outage(t)
		opensBreaker(t, rdb, on)
		logged(t, log, "does not answer")
		rdb.by.Store(0)
		for range 11 {
			took(t, on.Limiter)
			time.Sleep(store.Forgotten / 12)
		}
		logged(t, log, "does not answer")
		time.Sleep(store.Forgotten / 6)
		took(t, on.Limiter)
		logged(t, log, "does not answer", "answers again")
		rdb.by.Store(int64(time.Hour))
		for range 30 {
			took(t, on.Limiter)
		}
		logged(t, log, "does not answer", "answers again", "does not answer")
	})
}

// TestARingWithoutShardsIsBackWithAnyOfThem: while no shard has a key, one node stands
// for all of them.
func TestARingWithoutShardsIsBackWithAnyOfThem(t *testing.T) {
	t.Parallel()
	shard := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer shard.Close()
	synctest.Test(t, func(t *testing.T) {
		rdb, on, log := outage(t)
		down := false
		on.store.Follow(func(context.Context, string) (*redis.Client, error) {
			if down {
				return nil, errors.New("all ring shards are down")
			}
			return shard, nil
		})
		took(t, on.Limiter)
		for range 2 {
			down = true
			rdb.by.Store(int64(time.Hour))
			for range 30 {
				took(t, on.Limiter)
			}
			down = false
			rdb.by.Store(0)
			took(t, on.Limiter)
		}
		logged(t, log, "does not answer", "answers again", "does not answer", "answers again")
		if on.store.BreakerOpen(limit.DefaultBudget) {
			t.Error("after a shard answered: got an open breaker, want none")
		}
	})
}

// TestLateCallsDoNotLoseWhatIsKnown: calls that began before a cluster's nodes were known
// fail after another call was answered. They say nothing about a server that has a name.
func TestLateCallsDoNotLoseWhatIsKnown(t *testing.T) {
	t.Parallel()
	node := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer node.Close()
	synctest.Test(t, func(t *testing.T) {
		var rdb late
		var log lines
		st := storetest.Open(t, &rdb, store.Options{Logger: log.logger(), Budget: 5 * time.Second})
		st.FollowOnceKnown(func(context.Context, string) (*redis.Client, error) { return node, nil })
		l := aLimit(t, st)
		rdb.by.Store(int64(time.Hour))
		go func() { _, _ = l.Take(t.Context(), "s") }()
		synctest.Wait()
		rdb.by.Store(0)
		took(t, l)
		time.Sleep(10 * time.Second)
		logged(t, &log)
	})
}

// TestAClosedClientEndsNoOutage, because an error of the client itself is not an answer.
func TestAClosedClientEndsNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redis.NewClient(redistest.InBubble(&redis.Options{Addr: "127.0.0.1:1", Dialer: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("refused")
		}}))
		var log lines
		l := aLimit(t, storetest.Open(t, rdb, store.Options{Logger: log.logger()}))
		ask := func() {
			for range 100 {
				took(t, l)
				time.Sleep(50 * time.Millisecond)
			}
		}
		ask()
		logged(t, &log, "does not answer")
		_ = rdb.Close()
		ask()
		logged(t, &log, "does not answer")
	})
}

// TestASentinelsClusterHasANameInTheLog, although the client does not name its addresses.
func TestASentinelsClusterHasANameInTheLog(t *testing.T) {
	t.Parallel()
	rdb := redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	_ = rdb.Close()
	var log lines
	l := aLimit(t, storetest.Open(t, rdb, store.Options{Logger: log.logger(), FirstContact: time.Millisecond}))
	redistest.Await(t, 20*time.Second, "a closed client to be taken for an outage", func() bool {
		took(t, l)
		return len(log.all()) > 0
	})
	logged(t, &log, "address=*redis.ClusterClient")
}

// TestACauseIsNoDeadlineOfTheCallers: the diagnosis of a server that drops packets ends
// by its own deadline.
func TestACauseIsNoDeadlineOfTheCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redis.NewClient(redistest.InBubble(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}))
		defer time.Sleep(time.Minute) // until the client has given up
		defer rdb.Close()
		ask := caller(t, storetest.Open(t, rdb, store.Options{Logger: (&lines{}).logger()}), one, "k")
		before := ""
		for range 100 {
			err := ask()
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the error of the diagnosis: got %v, want one that is not a caller's deadline", err)
			}
			if before == "" {
				before = err.Error()
			}
			if before == err.Error() {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			return
		}
		t.Errorf("the error of a call: got only %q, want a cause too", before)
	})
}

// TestABreakerThatWasIdleHoldsNothingBack: an hour after the outage, its first calls are
// sent.
func TestABreakerThatWasIdleHoldsNothingBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, on, _ := outage(t)
		ask := opensBreaker(t, rdb, on)
		rdb.by.Store(int64(time.Millisecond))
		time.Sleep(store.Forgotten + time.Second)
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				if err := ask(); err != nil {
					t.Errorf("a call after a minute without any: got %v, want an answer", err)
				}
			})
		}
		all.Wait()
	})
}

// TestANodeThatAnotherReplacesEndsItsOutage, whether the other one was asked at once, as
// after a failover, or a minute later. The outage of the only server does not end so.
func TestANodeThatAnotherReplacesEndsItsOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next string
		once bool // that the next is asked at once
		want []store.Outcome
	}{
		"at once":        {"2", true, []store.Outcome{store.Lost, store.Back}},
		"a minute later": {"2", false, []store.Outcome{store.Lost, store.Back}},
		"the same":       {"1", false, []store.Outcome{store.Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb, on, log := outage(t)
				var seen recorded
				on.store.Observe(seen.observe)
				nodes := map[string]*redis.Client{}
				for _, port := range []string{"1", "2"} {
					nodes[port] = redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
					defer nodes[port].Close()
				}
				holder := "1"
				on.store.Follow(func(context.Context, string) (*redis.Client, error) { return nodes[holder], nil })
				took(t, on.Limiter)
				rdb.by.Store(int64(time.Hour))
				for range 40 {
					took(t, on.Limiter)
				}
				logged(t, log, "does not answer")
				holder = c.next
				if c.next == "2" {
					rdb.by.Store(0)
				}
				for range 59 {
					if c.once {
						took(t, on.Limiter)
					}
					time.Sleep(time.Second) // in the bubble
				}
				logged(t, log, "does not answer")
				time.Sleep(store.Forgotten)
				took(t, on.Limiter)
				if c.next == "2" {
					logged(t, log, "does not answer", `msg="neap: Redis is not asked any more" address=127.0.0.1:1`)
				}
				if got := seen.take()[store.Server]; !slices.Equal(got, c.want) {
					t.Errorf("got the events %v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestFailuresOfAnInstantOpenNoBreaker, even if one call failed a second before.
func TestFailuresOfAnInstantOpenNoBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, on, _ := outage(t)
		took(t, on.Limiter)
		rdb.by.Store(int64(time.Hour))
		took(t, on.Limiter)
		rdb.by.Store(0)
		for range 10 {
			took(t, on.Limiter)
			time.Sleep(100 * time.Millisecond)
		}
		rdb.by.Store(int64(time.Hour))
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() { _, _ = on.Take(t.Context(), "s") })
		}
		all.Wait()
		if on.store.BreakerOpen(limit.DefaultBudget) {
			t.Error("after failures of one instant: got an open breaker, want it closed")
		}
	})
}

// panicking is a log handler that panics.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("a logger") }

// TestAPanicOfTheLoggerLosesNoGrant: Redis still decides.
func TestAPanicOfTheLoggerLosesNoGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb late
		l := aLimit(t, storetest.Open(t, &rdb, store.Options{Logger: slog.New(panicking{})}))
		for _, by := range []time.Duration{time.Hour, 0} { // it is lost, and back
			rdb.by.Store(int64(by))
			for range 40 {
				took(t, l)
				time.Sleep(100 * time.Millisecond)
			}
		}
		if _, decided := took(t, l); !decided {
			t.Error("a take from a Redis that answers: got a degraded decision, want one by Redis")
		}
	})
}

// noMaster fails as go-redis does if a sentinel knows no master: nothing is sent.
type noMaster struct{ *redis.Client }

func (noMaster) Process(_ context.Context, cmd redis.Cmder) error {
	err := fmt.Errorf("redis: all sentinels specified in configuration are unreachable: %w", redis.Nil)
	cmd.SetErr(err)
	return err
}

// TestASentinelWithoutAMasterIsNoAnswer, although its error wraps that of a nil reply.
func TestASentinelWithoutAMasterIsNoAnswer(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, noMaster{unused(t)}, store.Options{Budget: 20 * time.Millisecond, FirstContact: time.Millisecond})
	runner := newRunner(t, st)
	redistest.Await(t, 20*time.Second, "the breaker to open", func() bool {
		if reply, err := runner.Run(t.Context(), one, []string{"k"}); !errors.Is(err, script.ErrNotExecuted) {
			t.Fatalf("a call without a master: got %v, %v, want ErrNotExecuted", reply, err)
		}
		return st.BreakerOpen(20 * time.Millisecond)
	})
}
