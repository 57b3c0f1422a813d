package limit_test

import (
	"context"
	"errors"
	"slices"
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

// TestWaitAdmitsInOrder has callers arrive one after the other. Some give up, some ask
// for more than others, and another subject waits too.
func TestWaitAdmitsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, nil, limit.TokenBucket{Rate: 1, Per: time.Second, Burst: 3})
		began := time.Now()
		var mu sync.Mutex
		var order []int
		var at []time.Duration
		var wg sync.WaitGroup
		for i := range 12 {
			cost, patience := int64(1), time.Hour
			if i%4 == 1 {
				cost = 3
			}
			if i%4 == 2 {
				patience = time.Second
			}
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				d, err := l.WaitN(ctx, "s", cost)
				switch {
				case i > 0 && patience == time.Second:
					if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Second {
						t.Errorf("caller %d, for 1s: got %+v, %v after %v, want DeadlineExceeded within 2s",
							i, d, err, time.Since(began))
					}
				case err != nil || !d.Allowed:
					t.Errorf("caller %d: got %+v, %v, want it allowed", i, d, err)
				default:
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
					at = append(at, time.Since(began).Round(time.Second))
				}
			})
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		if d, err := l.Wait(t.Context(), "other"); err != nil || !d.Allowed || time.Since(began) > time.Second {
			t.Errorf("a wait by another subject: got %+v, %v, want it allowed within 1s", d, err)
		}
		if n := l.Stats().Waiting; n != 11 {
			t.Errorf("while all wait: got %d waiting, want 11", n)
		}
		wg.Wait()
		if want := []int{0, 1, 3, 4, 5, 7, 8, 9, 11}; !slices.Equal(order, want) {
			t.Errorf("the order of admission: got %v, want %v", order, want)
		}
		s := time.Second
		if want := []time.Duration{0, s, 2 * s, 3 * s, 6 * s, 7 * s, 8 * s, 11 * s, 12 * s}; !slices.Equal(at, want) {
			t.Errorf("the times of admission: got %v, want %v", at, want)
		}
		if n := l.Stats().Waiting; n != 0 {
			t.Errorf("after all were admitted: got %d still waiting, want none", n)
		}
	})
}

func TestWaitRefusesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, &limit.Options{MaxWaiting: 2}, limit.FixedWindow{Limit: 1, Window: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		must(l.Take(ctx, "s"))(t)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if d, err := l.Wait(ctx, "s"); !errors.Is(err, context.Canceled) {
					t.Errorf("a wait that is canceled: got %+v, %v, want context.Canceled", d, err)
				}
			})
		}
		synctest.Wait()
		if _, err := l.Wait(ctx, "another"); !errors.Is(err, limit.ErrQueue) {
			t.Errorf("a third wait with MaxWaiting 2: got %v, want ErrQueue", err)
		}
		other := must(l.With(limit.FixedWindow{Limit: 2, Window: time.Hour}))(t)
		if s := other.Stats(); s.Waiting != 2 {
			t.Errorf("a limiter of With: got %d waiting, want the 2 of both", s.Waiting)
		}
		if _, err := other.Wait(ctx, "s"); !errors.Is(err, limit.ErrQueue) {
			t.Errorf("a third wait, in a limiter of With: got %v, want ErrQueue", err)
		}
		if _, err := l.Wait(ctx, ""); !errors.Is(err, limit.ErrSubject) {
			t.Errorf("a wait without a subject: got %v, want ErrSubject", err)
		}
		if _, err := l.WaitN(ctx, "another", 2); !errors.Is(err, limit.ErrCost) {
			t.Errorf("a wait for more than the limit: got %v, want ErrCost", err)
		}
		cancel()
		wg.Wait()
		if _, err := l.Wait(ctx, "another"); !errors.Is(err, context.Canceled) {
			t.Errorf("a wait with a canceled context: got %v, want context.Canceled", err)
		}
		if s := l.Stats(); s.Waiting != 0 {
			t.Errorf("got stats %+v, want 0 waiting", s)
		}
	})
}

// TestWaitKeepsTheLimit has the callers of four processes wait for one bucket in Redis.
func TestWaitKeepsTheLimit(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const callers, burst, rate = 100, 10, 100
		began := time.Now()
		var wg sync.WaitGroup
		for range 4 {
			l := must(limit.New(storetest.At(t, rdb, prefix), "wait", []limit.Policy{limit.TokenBucket{Rate: rate, Per: time.Second, Burst: burst}},
				closed(patience)))(t)
			for range callers / 4 {
				wg.Go(func() {
					if d, err := l.Wait(t.Context(), "s"); err != nil || !d.Allowed {
						t.Errorf("a wait: got %+v, %v, want it allowed", d, err)
					}
				})
			}
		}
		wg.Wait()
		if took, least := time.Since(began), time.Second*(callers-burst)/rate-time.Millisecond; took < least {
			t.Errorf("%d callers: got all admitted within %v, want at least %v", callers, took, least)
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// spent answers a thousand times that a window of 5 is used up and ends now.
type spent struct{ calls atomic.Int64 }

func (s *spent) Process(_ context.Context, cmd redis.Cmder) error {
	if s.calls.Add(1) > 1000 {
		err := redisError("ERR asked too often")
		cmd.SetErr(err)
		return err
	}
	cmd.(interface{ SetVal(val any) }).SetVal(int64(-1 - 5))
	return nil
}

// TestWaitDoesNotSpin if a clock of milliseconds says that no time is left.
func TestWaitDoesNotSpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb spent
		l := must(limit.New(&rdb, "spent", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if d, err := l.Wait(ctx, "s"); !errors.Is(err, context.DeadlineExceeded) || rdb.calls.Load() > 101 {
			t.Errorf("a wait of 100ms: got %+v, %v after %d calls, want DeadlineExceeded after at most 101",
				d, err, rdb.calls.Load())
		}
	})
}

func TestWaitTellsOfAnOutage(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: refused(t)})
	defer rdb.Close()
	for _, mode := range modes {
		l := must(limit.New(rdb, "wait", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, &limit.Options{Fail: mode}))(t)
		d, err := l.Wait(t.Context(), "s")
		if (err != nil) != (mode == store.FailClosed) || d.Degraded == (mode == store.FailClosed) {
			t.Errorf("%v: a wait without Redis: got %+v, %v, want an error under store.FailClosed, else a degraded one",
				mode, d, err)
		}
	}
}

// TestWaitHearsOfWhatIsGivenBack: the first caller in the queue is admitted when a
// decision of this process is settled to less or refunded, or when the subject is reset.
func TestWaitHearsOfWhatIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]func(l *limit.Limiter, d *limit.Decision) error{
		"settle": func(_ *limit.Limiter, d *limit.Decision) error {
			_, err := d.Settle(context.Background(), 1)
			return err
		},
		"refund": func(_ *limit.Limiter, d *limit.Decision) error { return d.Refund(context.Background()) },
		"reset": func(l *limit.Limiter, _ *limit.Decision) error {
			_, err := l.Reset(context.Background(), "s")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				policy := limit.FixedWindow{Limit: 10, Window: time.Hour}
				for _, l := range []*limit.Limiter{newTestLocal(t, nil, policy), inBubble(t, redistest.Bubble(t), "wait", policy)} {
					first := must(l.TakeN(t.Context(), "s", 8))(t)
					time.AfterFunc(time.Second, func() {
						if err := free(l, &first); err != nil {
							t.Errorf("the refund: got %v, want the permits given back", err)
						}
					})
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					d, err := l.WaitN(ctx, "s", 5)
					cancel()
					if took := time.Since(began).Round(time.Millisecond); err != nil || !d.Allowed || took != time.Second {
						t.Errorf("the caller that waits: got %+v, %v after %v, want it allowed after 1 s", d, err, took)
					}
				}
			})
		})
	}
}

// TestWhatIsGivenBackWakesWaitersOfWith: also those of a limiter that With made, with the
// same policies or with one more.
func TestWhatIsGivenBackWakesWaitersOfWith(t *testing.T) {
	t.Parallel()
	window := limit.FixedWindow{Limit: 1, Window: time.Hour}
	bans := limit.WithBan(limit.FixedWindow{Limit: 1, Window: time.Second}, limit.Ban{After: 1, Within: time.Minute, For: time.Hour})
	for name, c := range map[string]struct {
		policy limit.Policy
		free   func(t *testing.T, l *limit.Limiter, d limit.Decision) error
	}{
		"Refund": {window, func(t *testing.T, _ *limit.Limiter, d limit.Decision) error { return d.Refund(t.Context()) }},
		"Settle": {window, func(t *testing.T, _ *limit.Limiter, d limit.Decision) error {
			_, err := d.Settle(t.Context(), 0)
			return err
		}},
		"Reset": {window, func(t *testing.T, l *limit.Limiter, _ limit.Decision) error {
			_, err := l.Reset(t.Context(), "s")
			return err
		}},
		"Unban": {bans, func(t *testing.T, l *limit.Limiter, _ limit.Decision) error {
			_, err := l.Unban(t.Context(), "s")
			return err
		}},
	} {
		for with, policies := range map[string][]limit.Policy{
			"the same policies": {c.policy},
			"one more":          {c.policy, limit.FixedWindow{Name: "more", Limit: 100, Window: time.Hour}},
		} {
			t.Run(name+", "+with, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					l := newTestLocal(t, nil, c.policy)
					other := must(l.With(policies...))(t)
					d := must(l.Take(t.Context(), "s"))(t)
					must(l.Take(t.Context(), "s"))(t)
					time.Sleep(2 * time.Second) // only the ban is left of that policy
					began := time.Now()
					var wg sync.WaitGroup
					wg.Go(func() {
						if d, err := other.Wait(t.Context(), "s"); err != nil || !d.Allowed || time.Since(began) > 0 {
							t.Errorf("got allowed %t, %v after %v, want a permit at once", d.Allowed, err, time.Since(began))
						}
					})
					synctest.Wait()
					if n := l.Stats().Waiting; n != 1 {
						t.Errorf("before permits are given back: got %d waiting, want 1", n)
					}
					if err := c.free(t, l, d); err != nil {
						t.Errorf("got %v, want none", err)
					}
					wg.Wait()
				})
			})
		}
	}
}

// TestWaitersOfWithQueueTogether, in the order of their calls, if their policies are the
// same.
func TestWaitersOfWithQueueTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := limit.TokenBucket{Rate: 1, Per: time.Second}
		l := newTestLocal(t, nil, policy)
		both := []*limit.Limiter{l, must(l.With(policy))(t)}
		const n = 6
		admitted := make(chan int, n)
		for i := range n {
			go func() {
				if _, err := both[i%2].Wait(t.Context(), "s"); err != nil {
					t.Errorf("got %v, want none", err)
				}
				admitted <- i
			}()
			synctest.Wait()
		}
		for want := range n {
			if i := <-admitted; i != want {
				t.Errorf("got the caller %d admitted, want %d", i, want)
			}
		}
	})
}
