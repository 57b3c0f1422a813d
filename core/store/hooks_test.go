package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// hook has functions that a client calls before it sends. If one of them returns an error, nothing is sent.
type hook struct {
	single func(ctx context.Context, cmd redis.Cmder) error          // a command that goes by itself
	batch  func(all []redis.Cmder) (passed []redis.Cmder, err error) // and what of them is sent; may be nil
}

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := h.single(ctx, cmd); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	if h.batch == nil {
		return next
	}
	return func(ctx context.Context, all []redis.Cmder) error {
		passed, err := h.batch(all)
		if err != nil {
			return err
		}
		return next(ctx, passed)
	}
}

func isScript(cmd redis.Cmder) bool { return cmd.Name() == "evalsha" || cmd.Name() == "eval" }

// isProbe recognizes the call of a script that no server has.
func isProbe(cmd redis.Cmder) bool {
	return isScript(cmd) && strings.HasPrefix(fmt.Sprint(cmd.Args()[1]), "000000")
}

// byItself returns a function that asks. The function reports whether the call was
// answered and its caller made it by itself, on its own context.
func byItself(rdb *redis.Client, ask func() error) func() bool {
	var calls atomic.Int64
	rdb.AddHook(hook{single: func(ctx context.Context, cmd redis.Cmder) error {
		if isScript(cmd) && ctx.Done() != nil {
			calls.Add(1)
		}
		return nil
	}})
	return func() bool {
		before := calls.Load()
		return ask() == nil && calls.Load() > before
	}
}

var errHook = errors.New("refused by a hook")

// TestHooksThatRefuse: a call that a hook did not send has no answer, even if the
// commands do not show it.
func TestHooksThatRefuse(t *testing.T) {
	t.Parallel()
	for _, timeouts := range []bool{false, true} {
		rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = timeouts })
		var refuses atomic.Bool
		refuse := func() error {
			if refuses.Load() {
				return errHook
			}
			return nil
		}
		rdb.AddHook(hook{
			single: func(context.Context, redis.Cmder) error { return refuse() },
			batch:  func(all []redis.Cmder) ([]redis.Cmder, error) { return all, refuse() },
		})
		ask := caller(t, queued(t, rdb, 500*time.Millisecond), increment, redistest.Prefix(t))
		redistest.Await(t, 20*time.Second, "a first call", func() bool { return ask() == nil })
		refuses.Store(true)
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				if err := ask(); !errors.Is(err, script.ErrNotExecuted) {
					t.Errorf("a call that a hook refused: got %v, want ErrNotExecuted", err)
				}
			})
		}
		all.Wait()
		refuses.Store(false)
		redistest.Await(t, 20*time.Second, "an answer", func() bool { return ask() == nil })
	}
}

// panics makes a hook of the client panic as many times as it is set to.
func panics(rdb *redis.Client) *atomic.Int64 {
	left := new(atomic.Int64)
	panicOnce := func() {
		if left.Load() > 0 && left.Add(-1) >= 0 {
			panic(errHook)
		}
	}
	rdb.AddHook(hook{
		single: func(_ context.Context, cmd redis.Cmder) error {
			if isScript(cmd) {
				panicOnce()
			}
			return nil
		},
		batch: func(all []redis.Cmder) ([]redis.Cmder, error) { panicOnce(); return all, nil },
	})
	return left
}

// TestAPanicOfAHookIsAnErrorOfItsCall on every path, and the next call is answered.
func TestAPanicOfAHookIsAnErrorOfItsCall(t *testing.T) {
	t.Parallel()
	for _, mode := range []store.QueueMode{store.Direct, store.Queued} {
		for _, timeouts := range []bool{false, true} {
			rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = timeouts })
			panics(rdb).Store(1)
			ask := caller(t, storetest.Open(t, rdb, store.Options{Queue: mode, Budget: 10 * time.Second}), increment, redistest.Prefix(t))
			if err := ask(); !errors.Is(err, errHook) || !errors.Is(err, script.ErrNotExecuted) {
				t.Errorf("Queue %v, ContextTimeoutEnabled %t: got %v, want ErrNotExecuted with the panic of the hook", mode, timeouts, err)
			}
			if err := ask(); err != nil {
				t.Errorf("Queue %v, ContextTimeoutEnabled %t, the next call: got %v, want an answer", mode, timeouts, err)
			}
		}
	}
}

// TestAPanicOfAHookIsItsCallersAlone: the queue goes on.
func TestAPanicOfAHookIsItsCallersAlone(t *testing.T) { //nolint:paralleltest // it needs a process that has CPU to spare
	rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	ask := caller(t, queued(t, rdb, time.Minute), increment, redistest.Prefix(t))
	alone, left := byItself(rdb, ask), panics(rdb)
	redistest.Await(t, time.Minute, "a call by itself", alone)
	left.Store(1)
	if err := ask(); !errors.Is(err, errHook) {
		t.Fatalf("a call by itself whose hook panics: got %v, want the panic", err)
	}
	redistest.Await(t, time.Minute, "a call by itself after a panic", alone)
	left.Store(5)
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
		t.Errorf("callers that panicked: got %d, want at least 5, one for each panic", panicked.Load())
	}
	redistest.Await(t, time.Minute, "a call by itself after the panics", alone)
}

// TestAPanicOfAHookIsNoLoss: it says nothing about the server, however long the server
// had no call.
func TestAPanicOfAHookIsNoLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		t.Cleanup(m.Close)
		rdb := redistest.BubbleClient(t, m)
		var log lines
		st := storetest.Open(t, rdb, store.Options{Queue: store.Queued, Logger: log.logger()})
		ask := caller(t, st, increment, "k")
		for range 3 {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
		}
		panics(rdb).Store(1)
		time.Sleep(time.Minute)
		if err := ask(); !errors.Is(err, errHook) {
			t.Errorf("a call whose hook panics: got %v, want the panic", err)
		}
		if lines := log.all(); len(lines) > 0 {
			t.Errorf("the log: got the lines %q, want none", lines)
		}
		time.Sleep(time.Minute)
	})
}

// TestAPanicOfAHookInTheBackground ends nothing, although no caller waits for what the
// library sends by itself. After the hook is mended and the server is back, calls are
// answered again.
func TestAPanicOfAHookInTheBackground(t *testing.T) {
	t.Parallel()
	for mode, at := range map[store.QueueMode]func(redis.Cmder) bool{
		store.Direct: func(cmd redis.Cmder) bool { return cmd.Name() == "ping" },
		store.Queued: isProbe,
	} {
		srv := redistest.NewStandalone(t)
		rdb := srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled, o.PoolSize = true, 1 })
		var harmless atomic.Bool
		var panicked atomic.Int64
		rdb.AddHook(hook{single: func(_ context.Context, cmd redis.Cmder) error {
			if at(cmd) && !harmless.Load() {
				panicked.Add(1)
				panic(errHook)
			}
			return nil
		}})
		st := storetest.Open(t, rdb, store.Options{Queue: mode, Budget: 200 * time.Millisecond, FirstContact: time.Millisecond})
		call := caller(t, st, increment, redistest.Prefix(t))
		ask := func() bool { return call() == nil }
		redistest.Await(t, 20*time.Second, "a first call", ask)
		srv.Pause(t)
		redistest.Await(t, 20*time.Second, fmt.Sprintf("a panic with Queue %v", mode), func() bool {
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() { ask() })
			}
			all.Wait()
			return panicked.Load() > 0
		})
		harmless.Store(true)
		srv.Resume(t)
		redistest.Await(t, 20*time.Second, fmt.Sprintf("an answer after a panic with Queue %v", mode), ask)
	}
}

// TestAPanicOfAHookWhileAGrantEnds: a second call does not say that Redis has ended the
// grant, and the library ends it in the background.
func TestAPanicOfAHookWhileAGrantEnds(t *testing.T) {
	t.Parallel()
	type key struct{}
	rdb := redistest.Standalone(t).Client(t)
	rdb.AddHook(hook{single: func(ctx context.Context, _ redis.Cmder) error {
		if armed, is := ctx.Value(key{}).(*atomic.Bool); is && armed.Load() {
			panic(errHook)
		}
		return nil
	}})
	st := storetest.Open(t, rdb, store.Options{Prefix: redistest.Prefix(t), Queue: store.Direct, Budget: 10 * time.Second})
	locker, err1 := lock.New(st, "locks", &lock.Options{Lease: 10 * time.Second})
	guard, err2 := idempotency.New(st, "claims", idempotency.Retry{}, nil)
	slots, err3 := inflight.New(st, "slots", 10, &inflight.Options{Budget: 10 * time.Second, Fail: store.FailClosed})
	held, err4 := locker.Try(t.Context(), "held")
	wanted, err5 := locker.Try(t.Context(), "wanted")
	run, err6 := guard.Begin(t.Context(), "claim", "")
	slot, err7 := slots.Try(t.Context(), "slot")
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		t.Fatal(err)
	}
	waiting, err := locker.WithWait(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var waiter sync.WaitGroup
	waiter.Go(func() {
		next, err := waiting.Acquire(t.Context(), "wanted")
		if err == nil {
			err = next.Release(t.Context())
		}
		if err != nil {
			t.Errorf("the caller that waits: got %v, want the lock after its lease", err)
		}
	})
	redistest.Await(t, 30*time.Second, "a caller that waits", func() bool { return locker.Stats().Waiting == 1 })
	armed := new(atomic.Bool)
	var job *lock.Lock
	once := func(ctx context.Context) error {
		if job != nil {
			return job.Release(ctx)
		}
		armed.Store(false)
		_, err := locker.Once(ctx, "job", time.Now(), lock.Never, func(ctx context.Context) error {
			job, _ = lock.FromContext(ctx)
			armed.Store(true)
			return nil
		})
		return err
	}
	for name, c := range map[string]struct {
		end  func(context.Context) error
		once bool // a second call returns what the first one returned
	}{
		"Once":              {once, true},
		"Release of a lock": {held.Release, true},
		"Release of a lock that is to be handed on": {wanted.Release, true},
		"Complete":          {func(ctx context.Context) error { return run.Claim.Conclude(ctx, idempotency.DoneWith(nil)) }, true},
		"Release of a slot": {slot.Release, false},
	} {
		armed.Store(true)
		if err := c.end(context.WithValue(t.Context(), key{}, armed)); !errors.Is(err, errHook) {
			t.Errorf("%s: got %v, want the panic of the hook", name, err)
		}
		if err := c.end(t.Context()); c.once && !errors.Is(err, errHook) {
			t.Errorf("a second %s: got %v, want the error of the first", name, err)
		}
	}
	waiter.Wait()
	if err := st.Drain(t.Context()); err != nil {
		t.Errorf("Drain: got %v, want what was to end in the background to have ended", err)
	}
	for _, g := range st.Gauges() {
		if g.Active > 0 || g.Waiting > 0 || g.Background > 0 {
			t.Errorf("after the panics: got %+v, want nothing held", g)
		}
	}
	again, err := locker.Try(t.Context(), "held")
	if err != nil {
		t.Errorf("the lock whose release panicked: got %v, want it free", err)
	} else if err := again.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if run, err := guard.Begin(t.Context(), "claim", ""); err != nil || run.Claim != nil {
		t.Errorf("the claim whose conclusion panicked: got %+v, %v, want its result", run, err)
	}
}
