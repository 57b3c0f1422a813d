package limit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// TestAWaitLearnsOfAnOverride: a caller that waits is admitted when the override gives it room.
func TestAWaitLearnsOfAnOverride(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		one := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(1)}, overriding()))(t)
		other := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(1)}, overriding()))(t)
		must(one.Take(t.Context(), "s"))(t)
		began := time.Now()
		time.AfterFunc(time.Minute, func() {
			must(0, one.Override(t.Context(), "s", day, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
		})
		if d := must(one.Wait(t.Context(), "s"))(t); !d.Allowed || d.Limit != 100 || time.Since(began).Round(time.Second) != time.Minute {
			t.Errorf("a caller that waited: got %+v after %v, want it allowed after a minute", d, time.Since(began))
		}
		if d := must(other.WaitFor(t.Context(), "s", 1, time.Second))(t); !d.Allowed || d.Remaining != 97 {
			t.Errorf("a caller of a process that had not learned: got %+v, want it allowed, and 97 left", d)
		}
		if a, b := one.Stats(), other.Stats(); a.Allowed != 2 || b.Allowed != 1 || a.Denied+b.Denied+a.Canceled+b.Canceled > 0 {
			t.Errorf("got %+v and %+v, want three admitted and nothing else", a, b)
		}
	})
}

// TestAWaitForACostThatAnOverrideForbids ends, whoever gave the override, and when it ends.
func TestAWaitForACostThatAnOverrideForbids(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own, given, used, cost int64
		lasts                  time.Duration
	}{
		"given before":      {100, 10, 0, 50, 2 * time.Hour},
		"given while":       {100, 10, 60, 50, 2 * time.Hour},
		"ends while":        {10, 100, 60, 50, 30 * time.Minute},
		"allows all of it":  {100, 50, 60, 50, 2 * time.Hour},
		"is over before it": {100, 10, 60, 50, 30 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := redistest.Bubble(t)
			one := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(c.own)}, overriding()))(t)
			other := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(c.own)}, overriding()))(t)
			gives := func() {
				must(0, one.Override(t.Context(), "s", c.lasts, limit.FixedWindow{Limit: c.given, Window: time.Hour}))(t)
			}
			if c.own > c.given && c.used > 0 {
				take(t, one, "s", c.used)
				time.AfterFunc(time.Minute, gives)
			} else {
				gives()
				take(t, one, "s", c.used)
			}
			ctx, cancel := context.WithTimeout(t.Context(), day)
			defer cancel()
			d, err := other.WaitN(ctx, "s", c.cost)
			if fits := c.cost <= c.own && (c.cost <= c.given || c.lasts < time.Hour); fits != (err == nil) || !fits && !errors.Is(err, limit.ErrCost) || fits && !d.Allowed {
				t.Errorf("%s: got %+v, %v, want ErrCost: %t", name, d, err, !fits)
			}
			if s := other.Stats(); s.Canceled > 0 {
				t.Errorf("%s: got stats %+v, want no cost out of range told as a caller that has gone", name, s)
			}
		})
	}
}

// TestAWaitOutlivesManyOverrides: it learns of each, and waits for its permit.
func TestAWaitOutlivesManyOverrides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		opts := overriding()
		opts.Fail = store.FailLocal
		l := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(2)}, opts))(t)
		take(t, l, "s", 2)
		for i := range 10 {
			time.AfterFunc(time.Duration(1+i)*time.Minute, func() {
				must(0, l.Override(t.Context(), "s", day, limit.FixedWindow{Limit: 1 + int64(i)%2, Window: time.Hour}))(t)
			})
		}
		began := time.Now()
		d := must(l.Wait(t.Context(), "s"))(t)
		if took := time.Since(began).Round(time.Second); !d.Allowed || d.Degraded || took != time.Hour {
			t.Errorf("got %+v after %v, want it granted by Redis after an hour", d, took)
		}
	})
}

// TestAWaitThatCannotLearnWaitsOn: what it could not ask once is no denial.
func TestAWaitThatCannotLearnWaitsOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		learns := &learning{Client: redistest.BubbleClient(t, m)}
		opts := overriding()
		opts.Fail, opts.Instances = store.FailLocal, 1
		l := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(2)}, overriding()))(t)
		other := must(on(t, learns, "neap")("n", []limit.Policy{hourly(2)}, opts))(t)
		first := take(t, other, "s", 1)
		take(t, other, "s", 1)
		learns.refuse.Store(true)
		time.AfterFunc(time.Minute, func() {
			must(0, l.Override(t.Context(), "s", 2*time.Hour, limit.FixedWindow{Limit: 1, Window: time.Hour}))(t)
			must(0, first.Refund(t.Context()))(t) // so that the caller asks again
		})
		time.AfterFunc(30*time.Minute, func() { learns.refuse.Store(false) })
		began := time.Now()
		d := must(other.Wait(t.Context(), "s"))(t)
		if took := time.Since(began).Round(time.Second); !d.Allowed || d.Degraded || took != time.Hour {
			t.Errorf("got %+v after %v, want it granted by Redis after an hour", d, took)
		}
	})
}

// slowed is a client that takes its time for what some callers learn by, and may lose it then.
// They have lagging in their context.
type slowed struct {
	*redis.Client

	loses bool
	calls atomic.Int64
}

type lagging struct{}

func (s *slowed) Process(ctx context.Context, cmd redis.Cmder) error {
	if ctx.Value(lagging{}) != nil && strings.Contains(cmd.String(), overrideSHA) {
		s.calls.Add(1)
		time.Sleep(patience / 2)
		if s.loses {
			redistest.Write(cmd)
			cmd.SetErr(io.EOF)
			return io.EOF
		}
	}
	return s.Client.Process(ctx, cmd)
}

// TestAWaitKeepsItsRoomWhileItLearns: no other caller takes it.
func TestAWaitKeepsItsRoomWhileItLearns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		rdb := &slowed{Client: redistest.BubbleClient(t, m)}
		opts := overriding()
		opts.MaxWaiting = 1
		l := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(1)}, overriding()))(t)
		other := must(on(t, rdb, "neap")("n", []limit.Policy{hourly(1)}, opts))(t)
		first := take(t, other, "s", 1)
		waited := make(chan error, 1)
		go func() {
			_, err := other.Wait(context.WithValue(t.Context(), lagging{}, true), "s")
			waited <- err
		}()
		synctest.Wait()
		must(0, l.Override(t.Context(), "s", day, limit.FixedWindow{Limit: 2, Window: time.Hour}))(t)
		must(0, first.Refund(t.Context()))(t) // so that the caller asks again
		time.Sleep(patience / 4)
		if _, err := other.Wait(t.Context(), "another"); !errors.Is(err, limit.ErrQueue) {
			t.Errorf("a caller beside one that learns: got %v, want %v", err, limit.ErrQueue)
		}
		if err := <-waited; err != nil || rdb.calls.Load() != 1 {
			t.Errorf("the caller that learns: got %v after %d calls, want it granted after 1", err, rdb.calls.Load())
		}
		must(other.Wait(t.Context(), "another"))(t)
		if n := other.Stats().Waiting; n != 0 {
			t.Errorf("when all were admitted: got %d waiting, want none", n)
		}
	})
}

// TestAWaitForgetsWhyItCouldNotLearn: a caller that could not learn waits behind one that could.
// When its turn comes, Redis decides.
func TestAWaitForgetsWhyItCouldNotLearn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		rdb := &slowed{Client: redistest.BubbleClient(t, m), loses: true}
		l := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(100)}, overriding()))(t)
		other := must(on(t, rdb, "neap")("n", []limit.Policy{hourly(100)}, overriding()))(t)
		first := take(t, other, "s", 1)
		take(t, other, "s", 99)
		began := time.Now()
		var callers sync.WaitGroup
		waits := func(ctx context.Context, cost int64) {
			callers.Go(func() {
				d, err := other.WaitN(ctx, "s", cost)
				if took := time.Since(began).Round(time.Second); err != nil || !d.Allowed || d.Degraded || took != time.Hour {
					t.Errorf("a wait for %d: got %+v, %v after %v, want it granted by Redis after an hour", cost, d, err, took)
				}
			})
			synctest.Wait()
		}
		waits(context.WithValue(t.Context(), lagging{}, true), 1)
		waits(t.Context(), 50)
		time.Sleep(time.Minute)
		must(0, l.Override(t.Context(), "s", day, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
		must(0, first.Refund(t.Context()))(t) // so that the first caller asks again
		callers.Wait()
		if n := rdb.calls.Load(); n != 1 {
			t.Errorf("got %d calls lost, want 1", n)
		}
	})
}

// TestAWaitThatNeverKnowsThePolicies does not ask without a pause.
func TestAWaitThatNeverKnowsThePolicies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		rdb := redistest.BubbleClient(t, m)
		opts := overriding()
		opts.Fail, opts.Instances = store.FailLocal, 1
		l := must(on(t, rdb, "neap")("n", []limit.Policy{hourly(2)}, opts))(t)
		first := take(t, l, "s", 1)
		take(t, l, "s", 1)
		var changes atomic.Bool
		var calls atomic.Int64
		rdb.AddHook(redistest.BeforeHook(func(redis.Cmder) {
			if n := calls.Add(1); changes.Load() && n < 1000 { // other policies before each question
				_ = m.Set("neap:limit:n:{s}:override", fmt.Sprintf("window 1/1h name w%s", strings.Repeat(" ", int(n))))
				m.SetTTL("neap:limit:n:{s}:override", 2*time.Hour)
			}
		}))
		changes.Store(true)
		time.AfterFunc(time.Minute, func() { must(0, first.Refund(t.Context()))(t) }) // so that the caller asks again
		time.AfterFunc(30*time.Minute, func() { changes.Store(false) })
		if d := must(l.Wait(t.Context(), "s"))(t); !d.Allowed || calls.Load() > 100 {
			t.Errorf("got %+v after %d calls, want it granted after some", d, calls.Load())
		}
	})
}

// TestWaitForLastsOnceThroughOverrides: its time does not begin anew with each. Another process
// takes the permit first, and the next one is free after 69.5 minutes.
func TestWaitForLastsOnceThroughOverrides(t *testing.T) {
	t.Parallel()
	for most, want := range map[time.Duration]bool{65 * time.Minute: false, 75 * time.Minute: true} {
		synctest.Test(t, func(t *testing.T) {
			m := redistest.Bubble(t)
			l := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(1)}, overriding()))(t)
			other := must(on(t, redistest.BubbleClient(t, m), "neap")("n", []limit.Policy{hourly(1)}, overriding()))(t)
			take(t, l, "s", 1)
			time.Sleep(50 * time.Minute)
			time.AfterFunc(9*time.Minute, func() {
				must(0, l.Override(t.Context(), "s", day, limit.FixedWindow{Limit: 1, Window: time.Hour}))(t)
			})
			time.AfterFunc(9*time.Minute+30*time.Second, func() {
				must(other.Reset(t.Context(), "s"))(t)
				take(t, other, "s", 1)
			})
			began := time.Now()
			if d := must(l.WaitFor(t.Context(), "s", 1, most))(t); d.Allowed != want || time.Since(began) > most {
				t.Errorf("most %v: got %+v after %v, want allowed %t", most, d, time.Since(began), want)
			}
		})
	}
}
