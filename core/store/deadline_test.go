package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// sending is a way in which a store sends calls.
type sending struct {
	mode   store.QueueMode
	client func(t *testing.T, srv *redistest.Server, cluster *redistest.ClusterServer) script.Client
}

func single(timeouts bool) func(*testing.T, *redistest.Server, *redistest.ClusterServer) script.Client {
	return func(t *testing.T, srv *redistest.Server, _ *redistest.ClusterServer) script.Client {
		t.Helper()
		return srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = timeouts })
	}
}

func clustered(t *testing.T, _ *redistest.Server, cluster *redistest.ClusterServer) script.Client {
	t.Helper()
	return cluster.Client(t, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true })
}

func pipelined(t *testing.T, srv *redistest.Server, _ *redistest.ClusterServer) script.Client {
	t.Helper()
	pipe, err := srv.Client(t).AsyncAutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	return pipe
}

// sendings are all ways in which a store sends calls.
var sendings = map[string]sending{
	"queue":                         {store.Queued, single(false)},
	"queue, ContextTimeoutEnabled":  {store.Queued, single(true)},
	"queue, cluster":                {store.Queued, clustered},
	"direct":                        {store.Direct, single(false)},
	"direct, ContextTimeoutEnabled": {store.Direct, single(true)},
	"direct, cluster":               {store.Direct, clustered},
	"AsyncAutoPipeline":             {store.Direct, pipelined},
}

// question is what a caller with little time asks for a key.
type question struct {
	of      store.Primitive                                           // whose event it is; "" if there is none
	prepare func(ctx context.Context, key string) any                 // what the question needs; may be nil
	ask     func(ctx context.Context, key string, prepared any) error // errDegraded if a failure mode decided
	free    func(ctx context.Context, key string) bool                // nothing is left behind; may be nil
}

var errDegraded = errors.New("a failure mode decided")

func decided(d limit.Decision, err error) error {
	if err == nil && d.Degraded {
		return fmt.Errorf("%w: %w", errDegraded, d.Cause)
	}
	return err
}

// questions are those of every primitive on the store. Each limit is used up by one take.
func questions(t *testing.T, st *store.Store, prefix string) map[string]question {
	t.Helper()
	all := map[string]question{}
	add := func(name string, q question) {
		if q.prepare == nil {
			q.prepare = func(context.Context, string) any { return nil }
		}
		all[name] = q
	}
	var errs []error
	noted := func(err error) { errs = append(errs, err) }
	for _, fail := range []limit.FailMode{limit.FailOpen, limit.FailLocal, limit.FailClosed} {
		l := aLimitOf(t, st, 1, &limit.Options{Fail: fail})
		ask := func(how func(ctx context.Context, key string) (limit.Decision, error)) question {
			return question{of: store.Limit, ask: func(ctx context.Context, key string, _ any) error { return decided(how(ctx, key)) }}
		}
		add("Take, "+fail.String(), ask(l.Take))
		add("WaitFor, "+fail.String(), ask(func(ctx context.Context, key string) (limit.Decision, error) {
			return l.WaitFor(ctx, key, 1, time.Millisecond)
		}))
		peek := ask(l.Peek)
		peek.of = ""
		add("Peek, "+fail.String(), peek)
		add("All, "+fail.String(), ask(func(ctx context.Context, key string) (limit.Decision, error) {
			joint, err := limit.All(ctx, limit.Ask{Limiter: l, Subject: key})
			return joint.Decision(), err
		}))
		add("Settle, "+fail.String(), question{
			prepare: func(ctx context.Context, key string) any {
				d, _ := l.Take(ctx, key)
				return d
			},
			ask: func(ctx context.Context, _ string, prepared any) error {
				d := prepared.(limit.Decision)
				s, err := d.Settle(ctx, 0)
				return decided(s.After, err)
			},
		})
		slots, err := limit.NewConcurrency(st, "n-"+fail.String(), 1, &limit.ConcurrencyOptions{Fail: fail, Lease: time.Hour})
		noted(err)
		add("slot, "+fail.String(), question{of: store.InFlight, ask: func(ctx context.Context, key string, _ any) error {
			s, err := slots.Try(ctx, key)
			if err != nil {
				return err
			}
			defer s.Release(ctx)
			return decided(s.Decision, nil)
		}, free: func(ctx context.Context, key string) bool {
			n, err := slots.InFlight(ctx, key)
			return err == nil && n == 0
		}})
		add("InFlight, "+fail.String(), question{ask: func(ctx context.Context, key string, _ any) error {
			_, err := slots.InFlight(ctx, key)
			return err
		}})
	}
	locks, err := lock.New(st, "n", &lock.Options{Lease: time.Hour})
	noted(err)
	unlocked := func(ctx context.Context, key string) bool {
		s, err := locks.Inspect(ctx, key)
		return err == nil && !s.Held
	}
	for name, get := range map[string]func(context.Context, string) (*lock.Lock, error){"Try": locks.Try, "Acquire": locks.Acquire} {
		add(name, question{of: store.Lock, free: unlocked, ask: func(ctx context.Context, key string, _ any) error {
			held, err := get(ctx, key)
			if err == nil {
				_ = held.Release(ctx)
			}
			return err
		}})
	}
	idle := func(context.Context) error { return nil }
	add("Lead", question{of: store.Lock, free: unlocked, ask: func(ctx context.Context, key string, _ any) error { return locks.Lead(ctx, key, idle) }})
	add("Once", question{of: store.Lock, ask: func(ctx context.Context, key string, _ any) error {
		_, err := locks.Once(ctx, key, time.Now(), lock.Never, idle)
		return err
	}})
	guard, err := idempotency.New(st, "n", &idempotency.Options{Lease: time.Hour})
	noted(err)
	for name, begin := range map[string]func(context.Context, string, string) (idempotency.Run, error){"Begin": guard.Begin, "Await": guard.Await} {
		add(name, question{of: store.Guard, ask: func(ctx context.Context, key string, _ any) error {
			run, err := begin(ctx, key, "")
			if err == nil {
				_ = run.Claim.Abandon(ctx)
			}
			return err
		}, free: func(ctx context.Context, key string) bool {
			r, err := guard.Inspect(ctx, key)
			return err == nil && r.State != idempotency.Pending
		}})
	}
	sale, err := stock.New(st, "n", &stock.Options{Lease: time.Hour})
	noted(err)
	open := func(ctx context.Context, key string) any {
		_, err := sale.Open(ctx, key, 1, time.Now().Add(time.Hour))
		return err
	}
	add("Reserve", question{of: store.Stock, prepare: open, ask: func(ctx context.Context, key string, _ any) error {
		r, err := sale.Reserve(ctx, key, "buyer", fmt.Sprint(rand.Int64()), nil)
		if err == nil {
			_ = r.Cancel(ctx)
		}
		return err
	}, free: func(ctx context.Context, key string) bool {
		l, err := sale.Left(ctx, key)
		return err == nil && l.Left == 1
	}})
	runner := newRunner(t, st)
	for name, s := range map[string]*script.Script{"a script": one, "a batched script": increment} {
		add(name, question{ask: func(ctx context.Context, key string, _ any) error {
			_, err := runner.Run(ctx, s, []string{prefix + ":{" + key + "}"})
			return err
		}})
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return all
}

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
							prepared := q.prepare(t.Context(), key)
							ctx, cancel := context.WithTimeout(t.Context(), rand.N(3*trip))
							err := q.ask(ctx, key, prepared)
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
			prepared := map[string]any{}
			for name, q := range all {
				prepared[name] = q.prepare(t.Context(), name)
				if err := q.ask(t.Context(), name+"?", q.prepare(t.Context(), name+"?")); err != nil { // so that there are connections
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
					err := q.ask(ctx, name, prepared[name])
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
			l := aLimitOf(t, st, 1e6, &limit.Options{Fail: limit.FailOpen})
			take := func() {
				ctx, cancel := context.WithTimeout(t.Context(), budget/5)
				defer cancel()
				before := st.BreakerOpen(budget)
				d, err := l.Take(ctx, "s")
				after := st.BreakerOpen(budget)
				if before && after && !errors.Is(d.Cause, script.ErrNotExecuted) {
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
				open.Store(conn, true)
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
		if l.Stats().Degraded > 20 {
			t.Errorf("got %+v, want most calls canceled", l.Stats())
		}
	}
}
