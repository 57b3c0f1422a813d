package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
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

// batchHook counts batches and what is in them, and refuses calls with several keys as a proxy before a
// cluster does.
type batchHook struct {
	single, batches, batched atomic.Int64
	direct                   atomic.Int64 // of single: on the context of its caller

	oneKey  bool
	refused atomic.Int64
}

func (*batchHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *batchHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !isScript(cmd) {
			return next(ctx, cmd)
		}
		h.single.Add(1)
		if ctx.Done() != nil {
			h.direct.Add(1)
		}
		if h.refuses(cmd) {
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

func (h *batchHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		scripts, passed := 0, make([]redis.Cmder, 0, len(all))
		for _, cmd := range all {
			if isScript(cmd) {
				scripts++
			}
			if !h.refuses(cmd) {
				passed = append(passed, cmd)
			}
		}
		if scripts > 0 {
			h.batches.Add(1)
			h.batched.Add(int64(scripts))
		}
		return next(ctx, passed)
	}
}

func isScript(cmd redis.Cmder) bool { return cmd.Name() == "evalsha" || cmd.Name() == "eval" }

func (h *batchHook) refuses(cmd redis.Cmder) bool {
	if !h.oneKey || !isScript(cmd) {
		return false
	}
	words := cmd.Args()
	if n, _ := strconv.Atoi(words[2].(string)); n < 2 {
		return false
	}
	h.refused.Add(1)
	cmd.SetErr(crossSlot{})
	return true
}

// crossSlot is what a cluster answers to keys of several slots.
type crossSlot struct{}

func (crossSlot) Error() string { return "CROSSSLOT Keys in request don't hash to the same slot" }
func (crossSlot) RedisError()   {}

func queued(t *testing.T, rdb script.Client, budget time.Duration) *store.Store {
	t.Helper()
	return storetest.Open(t, rdb, store.Options{Prefix: redistest.Prefix(t), Budget: budget, Queue: store.Queued})
}

// TestManyCallersShareBatches, of limits whose calls are merged, and of scripts that are batched alone.
func TestManyCallersShareBatches(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]redis.UniversalClient{
		"standalone": redistest.Standalone(t).Client(t), "cluster": redistest.Cluster(t).Client(t),
		"proxy": redistest.Standalone(t).Client(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &batchHook{oneKey: name == "proxy"}
			rdb.AddHook(h)
			st := queued(t, rdb, time.Minute)
			l, err := limit.New(st, "n", []limit.Policy{limit.FixedWindow{Limit: 500, Window: time.Hour}}, &limit.Options{Fail: limit.FailClosed})
			if err != nil {
				t.Fatal(err)
			}
			runner, err := script.NewRunner(st, nil)
			if err != nil {
				t.Fatal(err)
			}
			const callers, each = 64, 40
			var allowed [4]atomic.Int64
			key := redistest.Prefix(t)
			var all sync.WaitGroup
			for caller := range callers {
				all.Go(func() {
					for i := range each {
						if i%4 == 3 {
							if _, err := runner.Run(t.Context(), increment, []string{key}); err != nil {
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
				t.Errorf("%d calls of a script ran %d times (%v), want once each", callers*each/4, n, err)
			}
			sent := h.single.Load() + h.batched.Load()
			t.Logf("%d calls were sent as %d, in %d batches and %d by themselves", callers*each, sent, h.batches.Load(), h.single.Load())
			if sent*2 > callers*each || h.batches.Load() == 0 {
				t.Errorf("%d calls were sent as %d, in %d batches, want half of them at most", callers*each, sent, h.batches.Load())
			}
			if n := h.refused.Load(); h.oneKey && (n == 0 || n > 20) {
				t.Errorf("the proxy refused %d calls, want one at least, and few: the first says that there must be no more", n)
			}
		})
	}
}

// TestAKeyOfAnotherKindFailsAlone has one among many subjects whose key holds no number. Its callers are told so,
// all others have their decisions, and the server counts as alive.
func TestAKeyOfAnotherKindFailsAlone(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	prefix := redistest.Prefix(t)
	st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Budget: time.Minute, Queue: store.Queued})
	l, err := limit.New(st, "n", []limit.Policy{limit.FixedWindow{Limit: 1000, Window: time.Hour}}, &limit.Options{Fail: limit.FailClosed})
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(t.Context(), prefix+":limit:n:{s0}:window-1000-1h", "no number", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	h := &probeHook{}
	rdb.AddHook(h)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := range 20 {
				d, err := l.Take(t.Context(), "s"+strconv.Itoa(i%8))
				if i%8 == 0 && !errors.Is(err, script.ErrFailed) || i%8 > 0 && (err != nil || !d.Allowed) {
					t.Errorf("subject %d: got %+v, %v, want ErrFailed of the first and permits of the others", i%8, d, err)
				}
			}
		})
	}
	all.Wait()
	if n := h.probes.Load(); n > 0 {
		t.Errorf("got %d probes of a server that answers, want none", n)
	}
}

// TestManyPoliciesShareABatch has callers of six of them at once.
func TestManyPoliciesShareABatch(t *testing.T) {
	t.Parallel()
	st := queued(t, redistest.Standalone(t).Client(t), time.Minute)
	var all sync.WaitGroup
	for i := range int64(6) {
		l, err := limit.New(st, "n", []limit.Policy{limit.FixedWindow{Limit: 100 + i, Window: time.Hour}}, &limit.Options{Fail: limit.FailClosed})
		if err != nil {
			t.Fatal(err)
		}
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

// TestALoneCallersLostAnswerIsNoted: calls by themselves open the breaker too.
func TestALoneCallersLostAnswerIsNoted(t *testing.T) { //nolint:paralleltest // it needs a process that has CPU to spare
	srv := redistest.Standalone(t)
	proxy := srv.Proxy(t)
	rdb := srv.Client(t, func(o *redis.Options) { o.Dialer, o.ContextTimeoutEnabled = proxy.Dial, true })
	h := &batchHook{}
	rdb.AddHook(h)
	const budget = 200 * time.Millisecond
	st := queued(t, rdb, budget)
	runner, err := script.NewRunner(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := redistest.Prefix(t)
	ask := func() error {
		_, err := runner.Run(t.Context(), increment, []string{key})
		return err
	}
	redistest.Await(t, time.Minute, "answers so fast that calls go by themselves", func() bool {
		before := h.direct.Load()
		return ask() == nil && h.direct.Load() > before
	})
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
	runner, err := script.NewRunner(queued(t, redistest.Standalone(t).Client(t), time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
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
					t.Errorf("a call with the argument %v: got %v, want an error of what cannot be written alone", arg, err)
				}
			}
		})
	}
	all.Wait()
}

// hostileHook panics, or refuses what it is asked to send without saying so in the commands.
type hostileHook struct {
	panics  atomic.Int64 // so many times
	refuses atomic.Bool
}

var errHook = errors.New("refused by a hook")

func (*hostileHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hostileHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if isScript(cmd) && h.panics.Load() > 0 && h.panics.Add(-1) >= 0 {
			panic(errHook)
		}
		if h.refuses.Load() {
			return errHook
		}
		return next(ctx, cmd)
	}
}

func (h *hostileHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		if h.panics.Load() > 0 && h.panics.Add(-1) >= 0 {
			panic(errHook)
		}
		if h.refuses.Load() {
			return errHook
		}
		return next(ctx, all)
	}
}

// TestHooksThatRefuse: what a hook did not send is no answer.
func TestHooksThatRefuse(t *testing.T) {
	t.Parallel()
	for _, timeouts := range []bool{false, true} {
		rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = timeouts })
		h := new(hostileHook)
		rdb.AddHook(h)
		runner, err := script.NewRunner(queued(t, rdb, 500*time.Millisecond), nil)
		if err != nil {
			t.Fatal(err)
		}
		key := redistest.Prefix(t)
		ask := func() error {
			_, err := runner.Run(t.Context(), increment, []string{key})
			return err
		}
		redistest.Await(t, 20*time.Second, "a first call", func() bool { return ask() == nil })
		h.refuses.Store(true)
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				if err := ask(); !errors.Is(err, script.ErrNotExecuted) {
					t.Errorf("a call that a hook refused: got %v, want ErrNotExecuted", err)
				}
			})
		}
		all.Wait()
		h.refuses.Store(false)
		redistest.Await(t, 20*time.Second, "an answer", func() bool { return ask() == nil })
	}
}

// TestAPanicOfAHookIsItsCallers on every path: by a goroutine of the library it would end the process.
func TestAPanicOfAHookIsItsCallers(t *testing.T) {
	t.Parallel()
	for _, mode := range []store.QueueMode{store.Direct, store.Queued} {
		for _, timeouts := range []bool{false, true} {
			rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = timeouts })
			h := new(hostileHook)
			rdb.AddHook(h)
			runner, err := script.NewRunner(storetest.Open(t, rdb, store.Options{Queue: mode}), nil)
			if err != nil {
				t.Fatal(err)
			}
			h.panics.Store(1)
			func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, errHook) {
						t.Errorf("Queue %v, ContextTimeoutEnabled %t: got the panic %v, want that of the hook", mode, timeouts, err)
					}
				}()
				_, _ = runner.Run(t.Context(), increment, []string{redistest.Prefix(t)})
			}()
		}
	}
}

// TestAPanicOfAHookIsItsCallersAlone: the queue goes on.
func TestAPanicOfAHookIsItsCallersAlone(t *testing.T) { //nolint:paralleltest // it needs a process that has CPU to spare
	rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	h, counts := new(hostileHook), &batchHook{}
	rdb.AddHook(counts)
	rdb.AddHook(h)
	runner, err := script.NewRunner(queued(t, rdb, time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
	key := redistest.Prefix(t)
	ask := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = p.(error)
			}
		}()
		_, err = runner.Run(t.Context(), increment, []string{key})
		return err
	}
	byItself := func() bool {
		before := counts.direct.Load()
		return ask() == nil && counts.direct.Load() > before
	}
	redistest.Await(t, time.Minute, "a call by itself", byItself)
	h.panics.Store(1)
	if err := ask(); !errors.Is(err, errHook) {
		t.Fatalf("a call by itself whose hook panics: got %v, want the panic", err)
	}
	redistest.Await(t, time.Minute, "a call by itself after a panic", byItself)
	h.panics.Store(5)
	var panicked atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 10 {
				if err := ask(); errors.Is(err, errHook) {
					panicked.Add(1)
				}
			}
		})
	}
	all.Wait()
	if panicked.Load() < 5 {
		t.Errorf("got %d callers that panicked, want 5 at least: one for each panic", panicked.Load())
	}
	redistest.Await(t, time.Minute, "a call by itself after the panics", byItself)
}

// panicHook panics at some commands.
type panicHook struct {
	batchHook

	at       func(redis.Cmder) bool
	harmless atomic.Bool
	panicked atomic.Int64
}

func (h *panicHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.at(cmd) && !h.harmless.Load() {
			h.panicked.Add(1)
			panic(errHook)
		}
		return next(ctx, cmd)
	}
}

// TestAPanicOfAHookInTheBackground ends nothing: no caller waits for what the library sends by itself. When the hook is
// mended and the server is back, calls are answered again.
func TestAPanicOfAHookInTheBackground(t *testing.T) {
	t.Parallel()
	for mode, at := range map[store.QueueMode]func(redis.Cmder) bool{
		store.Direct: func(cmd redis.Cmder) bool { return cmd.Name() == "ping" },
		store.Queued: isProbe,
	} {
		srv := redistest.NewStandalone(t)
		rdb := srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled, o.PoolSize = true, 1 })
		h := &panicHook{at: at}
		rdb.AddHook(h)
		st := storetest.Open(t, rdb, store.Options{Queue: mode, Budget: 200 * time.Millisecond, FirstContact: time.Millisecond})
		runner, err := script.NewRunner(st, nil)
		if err != nil {
			t.Fatal(err)
		}
		ask := func() bool {
			_, err := runner.Run(t.Context(), increment, []string{redistest.Prefix(t)})
			return err == nil
		}
		redistest.Await(t, 20*time.Second, "a first call", ask)
		srv.Pause(t)
		redistest.Await(t, 20*time.Second, fmt.Sprintf("a panic with Queue %v", mode), func() bool {
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() { ask() })
			}
			all.Wait()
			return h.panicked.Load() > 0
		})
		h.harmless.Store(true)
		srv.Resume(t)
		redistest.Await(t, 20*time.Second, fmt.Sprintf("an answer after a panic with Queue %v", mode), ask)
	}
}

// isProbe tells the call of a script that no server has.
func isProbe(cmd redis.Cmder) bool {
	return isScript(cmd) && strings.HasPrefix(cmd.Args()[1].(string), "000000")
}

// probeHook counts probes.
type probeHook struct {
	batchHook

	probes atomic.Int64
}

func (h *probeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if isProbe(cmd) {
			h.probes.Add(1)
		}
		return next(ctx, cmd)
	}
}

// TestAStalledServerIsNotSentMore stops the server under load. No caller waits much longer than its budget, what
// was not sent is known not to have run, and when the server is back so are the answers.
func TestAStalledServerIsNotSentMore(t *testing.T) {
	t.Parallel()
	for _, timeouts := range []bool{false, true} {
		t.Run("ContextTimeoutEnabled="+strconv.FormatBool(timeouts), func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			rdb := srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = timeouts })
			const budget = 300 * time.Millisecond
			runner, err := script.NewRunner(queued(t, rdb, budget), nil)
			if err != nil {
				t.Fatal(err)
			}
			key := redistest.Prefix(t)
			ask := func(ctx context.Context) error {
				_, err := runner.Run(ctx, increment, []string{key})
				return err
			}
			var answered, unsent, doubt atomic.Int64
			load := func(callers, each int) {
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for range each {
							switch err := ask(t.Context()); {
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
			load(200, 2)
			if took := time.Since(began); took > 2*budget+5*time.Second+stood() {
				t.Errorf("two calls to a stopped server: got %v, want about %v", took, 2*budget)
			}
			// All of them come at once, while nothing is in flight: three batches may be on their way
			// before any is late, and the last takes what has come by then.
			if doubt.Load() == 0 || unsent.Load() < 100 {
				t.Errorf("got %d in doubt and %d not sent, want one and 100 at least", doubt.Load(), unsent.Load())
			}
			srv.Resume(t)
			redistest.Await(t, 20*time.Second, "an answer", isBack)
			n, err := rdb.Get(t.Context(), key).Int64()
			if least := answered.Load(); err != nil || n < least || n > least+doubt.Load() {
				t.Errorf("it ran %d times (%v), want %d to %d", n, err, least, least+doubt.Load())
			}
		})
	}
}

// TestAnIdleQueueHasNothing: no goroutine is left of calls that have ended.
func TestAnIdleQueueHasNothing(t *testing.T) { //nolint:paralleltest // it counts goroutines
	rdb := redistest.Standalone(t).Client(t)
	runner, err := script.NewRunner(queued(t, rdb, time.Second), nil)
	if err != nil {
		t.Fatal(err)
	}
	key := redistest.Prefix(t)
	if _, err := runner.Run(t.Context(), increment, []string{key}); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 10 {
				if _, err := runner.Run(t.Context(), increment, []string{key}); err != nil {
					t.Errorf("a call: got %v, want no error", err)
				}
			}
		})
	}
	all.Wait()
	redistest.Await(t, 20*time.Second, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}
