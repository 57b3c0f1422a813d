package store_test

import (
	"context"
	"errors"
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

// delays is a hook that holds answers back, and counts probes.
type delays struct {
	by     atomic.Int64
	probes atomic.Int64
}

func (d *delays) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *delays) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if isProbe(cmd) {
			d.probes.Add(1)
		}
		return d.hold(ctx, next(ctx, cmd), cmd)
	}
}

func (d *delays) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error { return d.hold(ctx, next(ctx, all), all...) }
}

func (d *delays) hold(ctx context.Context, err error, all ...redis.Cmder) error {
	if !isScript(all[0]) {
		return err
	}
	select {
	case <-time.After(time.Duration(d.by.Load())):
	case <-ctx.Done():
		err = ctx.Err()
		for _, cmd := range all {
			cmd.SetErr(err)
		}
	}
	return err
}

// TestShortCalls have callers who leave before the budget ends, by a deadline or because
// they are canceled. A Redis that answers within the budget is not to blame, however many
// leave. A Redis that does not is found by probes. There is one at a time, and each has a
// budget.
func TestShortCalls(t *testing.T) {
	t.Parallel()
	const budget = limit.DefaultBudget
	for _, way := range []struct {
		mode     store.QueueMode
		slow     time.Duration // an answer within the budget, also behind calls that wait for one
		patience []time.Duration
	}{
		{store.Direct, budget - time.Nanosecond, []time.Duration{time.Millisecond, budget / 2, budget - time.Millisecond}},
		{store.Queued, budget * 2 / 5, []time.Duration{time.Millisecond, budget / 5, budget*2/5 - time.Millisecond}},
	} {
		for _, leaves := range []string{"deadline", "canceled"} {
			for _, patience := range way.patience {
				t.Run(fmt.Sprint(way.mode, leaves, patience), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { shortCalls(t, way.mode, way.slow, leaves == "canceled", patience) })
				})
			}
		}
	}
}

func shortCalls(t *testing.T, mode store.QueueMode, slow time.Duration, canceled bool, patience time.Duration) {
	t.Helper()
	const budget = limit.DefaultBudget
	m := redistest.Bubble(t)
	rdb := redistest.BubbleClient(t, m)
	defer func() {
		time.Sleep(time.Minute) // what runs in the background
		rdb.Close()
	}()
	var d delays
	rdb.AddHook(&d)
	d.by.Store(int64(slow))
	var log lines
	st := storetest.Open(t, rdb, store.Options{Logger: log.logger(), Queue: mode})
	l := aLimitOf(t, st, 1e6, &limit.Options{Fail: store.FailOpen})
	took(t, l)
	time.Sleep(time.Minute)
	take := func() (limit.Decision, error) {
		ctx, cancel := context.WithCancel(t.Context())
		if !canceled {
			ctx, cancel = context.WithTimeout(t.Context(), patience)
		}
		timer := time.AfterFunc(patience, cancel)
		defer cancel()
		defer timer.Stop()
		return l.Take(ctx, "s")
	}
	asks := func(d time.Duration) {
		var all sync.WaitGroup
		for until := time.Now().Add(d); time.Now().Before(until); {
			for range 3 {
				all.Go(func() {
					before := st.BreakerOpen(budget)
					d, err := take()
					if err == nil && d.Degraded && !before && !st.BreakerOpen(budget) {
						t.Errorf("a take while the breaker is closed: got %+v, want the end of the caller's context", d)
					}
				})
			}
			time.Sleep(20 * time.Millisecond)
		}
		all.Wait()
	}
	asks(5 * time.Second)
	logged(t, &log)
	if s := l.Stats(); s.Open || s.Degraded+s.Failed != 0 || s.Canceled == 0 {
		t.Errorf("with answers within the budget: got %+v, want canceled calls alone", s)
	}

	d.by.Store(int64(30 * time.Second))
	before := d.probes.Load()
	asks((store.TripInARow + 3) * budget * 11 / 10)
	logged(t, &log, "does not answer")
	if probes := d.probes.Load() - before; !l.Stats().Open || probes < store.TripInARow/2 || probes > store.TripInARow+3 {
		t.Errorf("without answers: got open %v after %d probes, want true after about %d", l.Stats().Open, probes, store.TripInARow)
	}
	if d, err := take(); !canceled && (err != nil || !d.Degraded) { // one that will be canceled may ask for all
		t.Errorf("a take while the breaker is open: got %+v, %v, want the failure mode's", d, err)
	}

	d.by.Store(int64(slow)) // still too late for the callers
	asks(3 * time.Second)
	logged(t, &log, "does not answer", "answers again")
	if _, err := take(); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		t.Errorf("a take after the outage: got %v, want the end of the caller's context", err)
	}
}
