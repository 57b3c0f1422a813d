package store_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
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

// counts is how many scripts a client sends.
type counts struct {
	single  atomic.Int64 // commands that go by themselves
	batches atomic.Int64
	batched atomic.Int64 // commands in these
	refused atomic.Int64 // of both

	manyKeys atomic.Bool // one of them had several keys
}

// count counts what the client sends. If oneKey is set, calls with several keys are
// refused, as by a proxy before a cluster.
func (n *counts) count(rdb redis.UniversalClient, oneKey bool) {
	refuses := func(cmd redis.Cmder) bool {
		if !isScript(cmd) {
			return false
		}
		if keys, _ := strconv.Atoi(cmd.Args()[2].(string)); keys < 2 {
			return false
		}
		n.manyKeys.Store(true)
		if !oneKey {
			return false
		}
		n.refused.Add(1)
		cmd.SetErr(redisError("CROSSSLOT Keys in request don't hash to the same slot"))
		return true
	}
	rdb.AddHook(hook{
		single: func(_ context.Context, cmd redis.Cmder) error {
			if isScript(cmd) {
				n.single.Add(1)
			}
			if refuses(cmd) {
				return cmd.Err()
			}
			return nil
		},
		batch: func(all []redis.Cmder) (passed []redis.Cmder, err error) {
			scripts := 0
			for _, cmd := range all {
				if isScript(cmd) {
					scripts++
				}
				if !refuses(cmd) {
					passed = append(passed, cmd)
				}
			}
			if scripts > 0 {
				n.batches.Add(1)
				n.batched.Add(int64(scripts))
			}
			return passed, nil
		},
	})
}

func aRing(t *testing.T) *redis.Ring {
	t.Helper()
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"one": redistest.Standalone(t).Addr()}, Username: redistest.User, Password: redistest.Password,
	})
	t.Cleanup(func() { ring.Close() })
	return ring
}

func queued(t *testing.T, rdb script.Client, budget time.Duration) *store.Store {
	t.Helper()
	return storetest.Open(t, rdb, store.Options{Prefix: redistest.Prefix(t), Budget: budget, Queue: store.Queued})
}

// TestManyCallersShareBatches, for limits whose calls are merged, and for scripts that
// are only batched.
func TestManyCallersShareBatches(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]redis.UniversalClient{
		"standalone": redistest.Standalone(t).Client(t), "cluster": redistest.Cluster(t).Client(t),
		"proxy": redistest.Standalone(t).Client(t), "ring": aRing(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := name == "proxy"
			var n counts
			n.count(rdb, proxy)
			st := queued(t, rdb, time.Minute)
			l := aLimitOf(t, st, 500, &limit.Options{Fail: store.FailClosed})
			key := redistest.Prefix(t)
			ask := caller(t, st, increment, key)
			const callers, each = 64, 40
			var allowed [4]atomic.Int64
			var all sync.WaitGroup
			for caller := range callers {
				all.Go(func() {
					for i := range each {
						if i%4 == 3 {
							if err := ask(); err != nil {
								t.Errorf("a script: got %v, want no error", err)
								return
							}
							continue
						}
						subject := (caller + i) % len(allowed)
						d, err := l.Take(t.Context(), strconv.Itoa(subject))
						if err != nil {
							t.Errorf("a decision: got %v, want no error", err)
							return
						}
						if d.Allowed {
							allowed[subject].Add(1)
						}
					}
				})
			}
			all.Wait()
			for subject := range allowed {
				if n := allowed[subject].Load(); n != callers*each*3/4/4 { // each is below the limit
					t.Errorf("subject %d: got %d admitted, want %d", subject, n, callers*each*3/4/4)
				}
			}
			if n, err := rdb.Get(t.Context(), key).Int(); err != nil || n != callers*each/4 {
				t.Errorf("%d calls of a script: got %d runs (%v), want one each", callers*each/4, n, err)
			}
			sent := n.single.Load() + n.batched.Load()
			t.Logf("%d calls were sent as %d, in %d batches and %d single commands",
				callers*each, sent, n.batches.Load(), n.single.Load())
			if sent*4 > callers*each*3 || n.batches.Load() == 0 { // on a free machine it is less than half
				t.Errorf("%d calls: got %d sent, in %d batches, want at most three in four", callers*each, sent, n.batches.Load())
			}
			if name == "ring" && n.manyKeys.Load() {
				t.Error("a ring, which chooses the server by the first key: got a call with several keys, want none")
			}
			if n := n.refused.Load(); proxy && (n == 0 || n > 20) {
				t.Errorf("the proxy: got %d calls refused, want at least one, and few: the first refusal says that there must be no more", n)
			}
		})
	}
}

// TestAKeyOfAnotherKindFailsAlone: among many subjects, the key of one holds no number.
// Its callers get an error, all others have their decisions, and the server counts as
// alive.
func TestAKeyOfAnotherKindFailsAlone(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	prefix := redistest.Prefix(t)
	st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Budget: time.Minute, Queue: store.Queued})
	l := aLimitOf(t, st, 1000, &limit.Options{Fail: store.FailClosed})
	if err := rdb.Set(t.Context(), prefix+":limit:n:{s0}:window-1000-1h", "no number", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	var probes atomic.Int64
	rdb.AddHook(hook{single: func(_ context.Context, cmd redis.Cmder) error {
		if isProbe(cmd) {
			probes.Add(1)
		}
		return nil
	}})
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := range 20 {
				d, err := l.Take(t.Context(), "s"+strconv.Itoa(i%8))
				if i%8 == 0 && !errors.Is(err, script.ErrFailed) || i%8 > 0 && (err != nil || !d.Allowed) {
					t.Errorf("subject %d: got %+v, %v, want ErrFailed for the first and permits for the others", i%8, d, err)
				}
			}
		})
	}
	all.Wait()
	if n := probes.Load(); n > 0 {
		t.Errorf("probes of a server that answers: got %d, want none", n)
	}
}

// TestManyPoliciesShareABatch has callers of six policies ask at once.
func TestManyPoliciesShareABatch(t *testing.T) {
	t.Parallel()
	st := queued(t, redistest.Standalone(t).Client(t), time.Minute)
	var all sync.WaitGroup
	for i := range int64(6) {
		l := aLimitOf(t, st, 100+i, &limit.Options{Fail: store.FailClosed})
		var allowed atomic.Int64
		var of sync.WaitGroup
		for range 150 {
			of.Go(func() {
				d, err := l.Take(t.Context(), "s")
				if err != nil {
					t.Errorf("Take: got %v, want a decision", err)
				}
				if d.Allowed {
					allowed.Add(1)
				}
			})
		}
		all.Go(func() {
			of.Wait()
			if n := allowed.Load(); n != 100+i {
				t.Errorf("policy %d: got %d admitted, want %d", i, n, 100+i)
			}
		})
	}
	all.Wait()
}

// TestALoneCallersLostAnswerIsNoted: calls that go by themselves open the breaker too.
func TestALoneCallersLostAnswerIsNoted(t *testing.T) { //nolint:paralleltest // it needs a process that has CPU to spare
	srv := redistest.Standalone(t)
	proxy := srv.Proxy(t)
	rdb := srv.Client(t, func(o *redis.Options) { o.Dialer, o.ContextTimeoutEnabled = proxy.Dial, true })
	const budget = 200 * time.Millisecond
	st := queued(t, rdb, budget)
	ask := caller(t, st, increment, redistest.Prefix(t))
	redistest.Await(t, time.Minute, "answers so fast that calls go by themselves", byItself(rdb, ask))
	proxy.Lose(redistest.EOF, 1_000_000, "evalsha", "eval")
	redistest.Await(t, 20*time.Second, "the breaker to open", func() bool {
		_ = ask()
		return st.BreakerOpen(budget)
	})
	proxy.Lose(redistest.EOF, 0)
	redistest.Await(t, 20*time.Second, "an answer", func() bool { return ask() == nil })
}

// TestAnArgumentThatCannotBeWrittenFailsAlone, and not the calls beside it.
func TestAnArgumentThatCannotBeWrittenFailsAlone(t *testing.T) {
	t.Parallel()
	runner := newRunner(t, queued(t, redistest.Standalone(t).Client(t), time.Minute))
	key := redistest.Prefix(t)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for range 20 {
				arg := any(1)
				if i == 0 {
					arg = struct{}{}
				}
				if _, err := runner.Run(t.Context(), increment, []string{key}, arg); (err == nil) != (i > 0) {
					t.Errorf("a call with the argument %v: got %v, want an error only if the argument cannot be written", arg, err)
				}
			}
		})
	}
	all.Wait()
}

// TestAStalledServerIsNotSentMore stops the server under load. No caller waits much
// longer than its budget. A call that was not sent is known not to have run. When the
// server is back, calls are answered again.
func TestAStalledServerIsNotSentMore(t *testing.T) {
	t.Parallel()
	for _, timeouts := range []bool{false, true} {
		t.Run("ContextTimeoutEnabled="+strconv.FormatBool(timeouts), func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			rdb := srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = timeouts })
			const budget = 300 * time.Millisecond
			key := redistest.Prefix(t)
			ask := caller(t, queued(t, rdb, budget), increment, key)
			var answered, unsent, doubt atomic.Int64
			load := func(callers, each int) {
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for range each {
							switch err := ask(); {
							case err == nil:
								answered.Add(1)
							case errors.Is(err, script.ErrMaybeExecuted):
								doubt.Add(1)
							case errors.Is(err, script.ErrNotExecuted):
								unsent.Add(1)
							default:
								t.Errorf("a call: got %v, want an answer or one of two classes", err)
							}
						}
					})
				}
				all.Wait()
			}
			isBack := func() bool {
				before := answered.Load()
				load(1, 1)
				return answered.Load() > before
			}
			redistest.Await(t, 20*time.Second, "a first call", isBack)
			load(100, 5)
			srv.Pause(t)
			stood := redistest.Witness(t)
			began := time.Now()
			load(200, 4)
			if took := time.Since(began); took > 4*budget+5*time.Second+stood() {
				t.Errorf("four calls to a stopped server: got %v, want about %v", took, 4*budget)
			}
			// All of them come at once, while nothing is in flight. So three batches may
			// be on their way before any is late, and the last of them takes what has
			// come by then. On a busy machine these are most of the first two calls.
			if doubt.Load() == 0 || unsent.Load() < 200 {
				t.Errorf("calls to a stopped server: got %d in doubt and %d not sent, want at least one and 200", doubt.Load(), unsent.Load())
			}
			srv.Resume(t)
			redistest.Await(t, 20*time.Second, "an answer", isBack)
			n, err := rdb.Get(t.Context(), key).Int64()
			if least := answered.Load(); err != nil || n < least || n > least+doubt.Load() {
				t.Errorf("the script: got %d runs (%v), want %d to %d", n, err, least, least+doubt.Load())
			}
		})
	}
}

// TestAnIdleQueueHasNothing: calls that have ended leave no goroutine.
func TestAnIdleQueueHasNothing(t *testing.T) { //nolint:paralleltest // it counts goroutines
	rdb := redistest.Standalone(t).Client(t)
	ask := caller(t, queued(t, rdb, time.Minute), increment, redistest.Prefix(t))
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 10 {
				if err := ask(); err != nil {
					t.Errorf("a call: got %v, want no error", err)
				}
			}
		})
	}
	all.Wait()
	redistest.Await(t, 20*time.Second, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}
