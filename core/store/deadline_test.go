package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// trip is how long an answer takes.
const trip = 5 * time.Millisecond

// TestACallersDeadlineIsNoFailureMode has callers with up to three round trips of a
// budget of a minute ask a server whose answers have become slower. So the queue drops
// calls that would come too late. No failure mode decides for any of them, and Redis is
// not said to have failed.
func TestACallersDeadlineIsNoFailureMode(t *testing.T) {
	t.Parallel()
	srv, cluster := redistest.Standalone(t), redistest.Cluster(t)
	for name, way := range sendings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := redistest.Prefix(t)
			var log lines
			var slower atomic.Int64
			slows := hook{
				single: func(context.Context, redis.Cmder) error { time.Sleep(time.Duration(slower.Load())); return nil },
				batch: func(all []redis.Cmder) ([]redis.Cmder, error) {
					time.Sleep(time.Duration(slower.Load()))
					return all, nil
				},
			}
			rdb := way.client(t, srv, cluster)
			rdb.(interface{ AddHook(redis.Hook) }).AddHook(slows)
			st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Budget: time.Minute, Queue: way.mode, Logger: log.logger()})
			ask := caller(t, st, increment, prefix)
			for i := range 50 {
				if i == 20 {
					slower.Store(int64(trip))
				}
				if err := ask(); err != nil {
					t.Fatal(err)
				}
			}
			const callers, each = 16, 8
			ended := 0
			for name, q := range questions(t, st, prefix) {
				var late atomic.Int64
				var all sync.WaitGroup
				for caller := range callers {
					all.Go(func() {
						for i := range each {
							key := fmt.Sprint(name, i, caller/4)
							if err := q.prepare(t.Context(), key); err != nil {
								t.Error(err)
							}
							ctx, cancel := context.WithTimeout(t.Context(), 3*trip*time.Duration(i)/each)
							err := q.ask(ctx, key)
							cancel()
							_, is := errors.AsType[*script.Error](err)
							switch {
							case errors.Is(err, context.DeadlineExceeded) && !is:
								late.Add(1)
							case is, errors.Is(err, errDegraded):
								t.Errorf("%s: got %v, want an answer or the end of the caller's context", name, err)
							}
						}
					})
				}
				all.Wait()
				ended += int(late.Load())
			}
			if ended == 0 {
				t.Error("got no call that its caller's deadline ended: this test is about them")
			}
			blameless(t, st, &log)
		})
	}
}

// blameless fails the test if a server of the store is said to have failed.
func blameless(t *testing.T, st *store.Store, log *lines) {
	t.Helper()
	logged(t, log)
	for _, g := range st.Gauges() {
		if g.Open || g.Lost || g.Failing != 0 {
			t.Errorf("the gauge of %s %s: got %+v, want no failure", g.Primitive, g.Name, g)
		}
	}
}

// TestACallersDeadlineEndsItsCall has a server stand still for less than the budget.
// Callers with less time get the error of their contexts, which is all that observers
// hear of. What the calls were granted is given back.
func TestACallersDeadlineEndsItsCall(t *testing.T) {
	t.Parallel()
	for name, way := range sendings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, cluster, servers := theirOwn(t, name)
			prefix := redistest.Prefix(t)
			var log lines
			var told recorded
			st := storetest.Open(t, way.client(t, srv, cluster), store.Options{Prefix: prefix, Budget: time.Minute, Queue: way.mode, Logger: log.logger()})
			all := questions(t, st, prefix)
			for name, q := range all {
				err := errors.Join(q.prepare(t.Context(), name), q.prepare(t.Context(), name+"?"))
				if err := errors.Join(err, q.ask(t.Context(), name+"?")); err != nil { // so that there are connections
					t.Fatalf("%s: got %v, want an answer", name, err)
				}
			}
			defer st.Observe(told.observe)()
			for _, s := range servers {
				s.Pause(t)
			}
			var asking sync.WaitGroup
			want := map[store.Primitive]int{}
			for name, q := range all {
				if q.of != "" {
					want[q.of]++
				}
				asking.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					defer cancel()
					err := q.ask(ctx, name)
					if _, is := errors.AsType[*script.Error](err); is || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: got %v, want the end of the caller's context", name, err)
					}
				})
			}
			asking.Wait()
			told.mu.Lock()
			for _, e := range told.all {
				if want[e.Primitive]--; e.Outcome != store.Canceled || !errors.Is(e.Class, context.DeadlineExceeded) {
					t.Errorf("an observer: got %+v, want it canceled by the end of the caller's context", e)
				}
			}
			told.mu.Unlock()
			for of, missing := range want {
				if missing != 0 {
					t.Errorf("events of %s: got %d too few", of, missing)
				}
			}
			for _, s := range servers {
				s.Resume(t)
			}
			for name, q := range all {
				redistest.Await(t, time.Minute, name+" to leave nothing behind", func() bool { return q.free == nil || q.free(t.Context(), name) })
			}
			blameless(t, st, &log)
		})
	}
}

// theirOwn starts the servers for a way of sending.
func theirOwn(t *testing.T, way string) (srv *redistest.Server, cluster *redistest.ClusterServer, all []*redistest.Server) {
	t.Helper()
	if slices.Contains([]string{"queue, cluster", "direct, cluster"}, way) {
		cluster = redistest.NewCluster(t)
		return nil, cluster, cluster.Nodes()
	}
	srv = redistest.NewStandalone(t)
	return srv, nil, []*redistest.Server{srv}
}

// isLost reports whether a server of the store is lost.
func isLost(st *store.Store) bool {
	return slices.ContainsFunc(st.Gauges(), func(g store.Gauge) bool { return g.Lost })
}

// TestADeadRedisIsFoundByCallersWithLittleTime: each caller has a fifth of the budget. The
// store finds out by itself that the server does not answer, and that it answers again.
// While the breaker is open, the failure mode decides at once.
func TestADeadRedisIsFoundByCallersWithLittleTime(t *testing.T) {
	t.Parallel()
	for name, way := range sendings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, cluster, servers := theirOwn(t, name)
			const budget = 300 * time.Millisecond
			st := storetest.Open(t, way.client(t, srv, cluster), store.Options{Prefix: redistest.Prefix(t), Budget: budget, Queue: way.mode})
			l := aLimitOf(t, st, 1e6, &limit.Options{Fail: store.FailOpen})
			stood := redistest.Witness(t)
			take := func() {
				ctx, cancel := context.WithTimeout(t.Context(), budget/5)
				defer cancel()
				before := st.BreakerOpen(budget)
				d, err := l.Take(ctx, "s")
				after := st.BreakerOpen(budget)
				late := err != nil && errors.Is(err, ctx.Err()) && stood() >= budget/10 // before the take
				if before && after && !late && !errors.Is(d.Cause, script.ErrNotExecuted) {
					t.Errorf("a take while the breaker is open: got %+v, %v, want it held back", d, err)
				}
				if !before && !after && d.Degraded {
					t.Errorf("a take while the breaker is closed: got %+v, %v, want the end of its context", d, err)
				}
			}
			redistest.Await(t, time.Minute, "an answer, and no outage", func() bool {
				d, err := l.Take(t.Context(), "s")
				return err == nil && !d.Degraded && !isLost(st)
			})
			for _, s := range servers {
				s.Pause(t)
			}
			redistest.Await(t, time.Minute, "the server to be found dead", func() bool {
				take()
				// A queue gives its probes more time while the process has no CPU to
				// spare, so there may be too few of them for the breaker.
				return isLost(st) && (way.mode == store.Queued || st.BreakerOpen(budget))
			})
			for range 10 {
				take()
			}
			for _, s := range servers {
				s.Resume(t)
			}
			redistest.Await(t, time.Minute, "the server to be back", func() bool {
				take()
				return !isLost(st) && !st.BreakerOpen(budget)
			})
		})
	}
}

// TestADeadRedisIsFoundByCallersThatAreCanceled while their calls wait for a connection.
func TestADeadRedisIsFoundByCallersThatAreCanceled(t *testing.T) {
	t.Parallel()
	for _, mode := range []store.QueueMode{store.Queued, store.Direct} {
		const budget = 200 * time.Millisecond
		var dead atomic.Bool
		var open sync.Map
		rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) {
			o.ContextTimeoutEnabled = true
			o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
				if dead.Load() { // the machine is gone
					<-ctx.Done()
					return nil, ctx.Err()
				}
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if err == nil {
					open.Store(conn, true)
					if dead.Load() {
						conn.Close()
					}
				}
				return conn, err
			}
		})
		st := storetest.Open(t, rdb, store.Options{Prefix: redistest.Prefix(t), Budget: budget, Queue: mode})
		l := aLimit(t, st)
		redistest.Await(t, time.Minute, "answers", func() bool {
			_, byRedis := took(t, l)
			return byRedis
		})
		dead.Store(true)
		open.Range(func(conn, _ any) bool { return conn.(net.Conn).Close() == nil })
		redistest.Await(t, time.Minute, "the server to be found dead", func() bool {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(budget/10, cancel)
			_, _ = l.Take(ctx, "s")
			return st.BreakerOpen(budget)
		})
		if s := l.Stats(); s.Degraded > s.Canceled { // a busy machine cancels some too late
			t.Errorf("got %+v, want most calls canceled", s)
		}
	}
}
