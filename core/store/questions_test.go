package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// sending is a way in which a store sends calls.
type sending struct {
	mode   store.QueueMode
	client func(t *testing.T, srv *redistest.Server, cluster *redistest.ClusterServer) script.Client
}

func single(timeouts bool) func(*testing.T, *redistest.Server, *redistest.ClusterServer) script.Client {
	return func(t *testing.T, srv *redistest.Server, _ *redistest.ClusterServer) script.Client {
		t.Helper()
		return srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled, o.ReadTimeout = timeouts, time.Minute })
	}
}

func clustered(t *testing.T, _ *redistest.Server, cluster *redistest.ClusterServer) script.Client {
	t.Helper()
	return cluster.Client(t, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled, o.ReadTimeout = true, time.Minute })
}

func pipelined(t *testing.T, srv *redistest.Server, _ *redistest.ClusterServer) script.Client {
	t.Helper()
	pipe, err := srv.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute }).AsyncAutoPipeline()
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
	of      store.Primitive                             // whose event it is; "" if there is none
	prepare func(ctx context.Context, key string) error // what the question needs; may be nil
	ask     func(ctx context.Context, key string) error // errDegraded if a failure mode decided
	free    func(ctx context.Context, key string) bool  // nothing is left behind; may be nil
}

var errDegraded = errors.New("a failure mode decided")

func decided(d limit.Decision, err error) error {
	if err == nil && d.Degraded {
		return fmt.Errorf("%w: %w", errDegraded, d.Cause)
	}
	return err
}

// questions are those of every primitive on the store. Each limit is used up by one take.
// What concludes a grant, such as Release or Settle, is none: it does not end with its
// caller's context.
func questions(t *testing.T, st *store.Store, prefix string) map[string]question {
	t.Helper()
	all := map[string]question{}
	add := func(name string, q question) {
		if q.prepare == nil {
			q.prepare = func(context.Context, string) error { return nil }
		}
		all[name] = q
	}
	var errs []error
	noted := func(err error) { errs = append(errs, err) }
	for _, fail := range []store.FailMode{store.FailOpen, store.FailLocal, store.FailClosed} {
		l := aLimitOf(t, st, 1, &limit.Options{Fail: fail})
		ask := func(how func(ctx context.Context, key string) (limit.Decision, error)) question {
			return question{of: store.Limit, ask: func(ctx context.Context, key string) error { return decided(how(ctx, key)) }}
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
		slots, err := inflight.New(st, "n-"+fail.String(), 1, &inflight.Options{Fail: fail, Lease: time.Hour})
		noted(err)
		add("slot, "+fail.String(), question{of: store.InFlight, ask: func(ctx context.Context, key string) error {
			s, err := slots.Try(ctx, key)
			if err != nil {
				return err
			}
			defer s.Release(ctx)
			return decided(limit.Decision{Allowed: s.Allowed, Degraded: s.Degraded, Cause: s.Cause}, nil)
		}, free: func(ctx context.Context, key string) bool {
			n, err := slots.InFlight(ctx, key)
			return err == nil && n == 0
		}})
		add("InFlight, "+fail.String(), question{ask: func(ctx context.Context, key string) error {
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
		add(name, question{of: store.Lock, free: unlocked, ask: func(ctx context.Context, key string) error {
			held, err := get(ctx, key)
			if err == nil {
				_ = held.Release(ctx)
			}
			return err
		}})
	}
	idle := func(context.Context) error { return nil }
	add("Lead", question{of: store.Lock, free: unlocked, ask: func(ctx context.Context, key string) error { return locks.Lead(ctx, key, idle) }})
	add("Once", question{of: store.Lock, ask: func(ctx context.Context, key string) error {
		_, err := locks.Once(ctx, key, time.Now(), lock.Never, idle)
		return err
	}})
	guard, err := idempotency.New(st, "n", idempotency.Retry{}, &idempotency.Options{Lease: time.Hour})
	noted(err)
	for name, begin := range map[string]func(context.Context, string, string) (idempotency.Answer, error){"Begin": guard.Begin, "Await": guard.Await} {
		add(name, question{of: store.Guard, ask: func(ctx context.Context, key string) error {
			run, err := begin(ctx, key, "")
			if err == nil {
				_ = run.Claim.Conclude(ctx, idempotency.NothingDone())
			}
			return err
		}, free: func(ctx context.Context, key string) bool {
			r, err := guard.Inspect(ctx, key)
			return err == nil && r.State != idempotency.Pending
		}})
	}
	sale, err := stock.New(st, "n", &stock.Options{Lease: time.Hour})
	noted(err)
	var reserved atomic.Int64
	open := func(ctx context.Context, key string) error {
		_, err := sale.Open(ctx, key, 1, time.Now().Add(time.Hour))
		return err
	}
	add("Reserve", question{of: store.Stock, prepare: open, ask: func(ctx context.Context, key string) error {
		r, err := sale.Reserve(ctx, key, "buyer", fmt.Sprint(reserved.Add(1)), nil)
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
		add(name, question{ask: func(ctx context.Context, key string) error {
			_, err := runner.Run(ctx, s, []string{prefix + ":{" + key + "}"})
			return err
		}})
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return all
}
