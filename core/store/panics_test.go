package store_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	"github.com/neap-go/neap/internal/storetest"
)

// badHook does not return while it is armed.
type badHook struct {
	armed         atomic.Bool
	met           atomic.Int64
	before, after func(ctx context.Context)
	fails         error // of all calls, if it is set; nothing is sent then
}

func (*badHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *badHook) around(ctx context.Context, send func() error) error {
	armed := h.armed.Load()
	if armed {
		h.met.Add(1)
		h.before(ctx)
		if h.fails != nil {
			return h.fails
		}
	}
	err := send()
	if armed {
		h.after(ctx)
	}
	return err
}

func (h *badHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.around(ctx, func() error { return next(ctx, cmd) })
	}
}

func (h *badHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		return h.around(ctx, func() error { return next(ctx, all) })
	}
}

// ofCaller marks the contexts of a test's own goroutine, which Goexit would end.
type ofCaller struct{}

func doNothing(context.Context) {}

func doPanic(context.Context) { panic(errHook) }

func doExit(ctx context.Context) {
	if ctx.Value(ofCaller{}) != nil {
		panic(errHook)
	}
	runtime.Goexit()
}

// grants is one grant of a primitive, with a lease.
type grants struct {
	name  string
	take  func(ctx context.Context) error
	held  func(ctx context.Context) error // reports that the grant is not held any more
	leave func(ctx context.Context) error
}

const panicLease = 3 * time.Second

var errTaken = errors.New("another request has it")

// eachGrant returns one grant of each primitive that has leases. A new one is a row.
func eachGrant(t *testing.T, st *store.Store) []*grants {
	t.Helper()
	month, err1 := limit.New(st, "month", []limit.Policy{limit.WithLease(limit.FixedWindow{Limit: 10, Window: time.Hour}, panicLease)}, &limit.Options{Fail: store.FailClosed})
	slots, err2 := inflight.New(st, "slots", 1, &inflight.Options{Lease: panicLease, Fail: store.FailClosed})
	locker, err3 := lock.New(st, "locks", &lock.Options{Lease: panicLease})
	guard, err4 := idempotency.New(st, "claims", idempotency.Retry{}, &idempotency.Options{Lease: panicLease})
	items, err5 := stock.New(st, "items", &stock.Options{Lease: panicLease})
	var err6 error
	if err5 == nil {
		_, err6 = items.Open(t.Context(), "item", 1, time.Now().Add(time.Hour))
	}
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	var estimate limit.Decision
	var slot *inflight.Slot
	var held *lock.Lock
	var claim *idempotency.Claim
	var reserved *stock.Reservation
	return []*grants{{
		name: "estimate",
		take: func(ctx context.Context) (err error) {
			if estimate, err = month.TakeN(ctx, "s", 10); err == nil && !estimate.Allowed {
				return errTaken
			}
			return err
		},
		held: func(ctx context.Context) error {
			if d, err := month.Take(ctx, "s"); err != nil || d.Allowed {
				return errors.Join(err, errors.New("another request found room"))
			}
			return nil
		},
		leave: func(ctx context.Context) error {
			_, err := estimate.Settle(ctx, 0)
			return err
		},
	}, {
		name: "slot",
		take: func(ctx context.Context) (err error) {
			if slot, err = slots.Try(ctx, "s"); err == nil && !slot.Allowed {
				return errTaken
			}
			return err
		},
		held: func(ctx context.Context) error {
			if n, err := slots.InFlight(ctx, "s"); n != 1 {
				return errors.Join(err, errors.New("Redis counts no slot"))
			}
			return nil
		},
		leave: func(ctx context.Context) error { return slot.Release(ctx) },
	}, {
		name: "lock",
		take: func(ctx context.Context) (err error) {
			held, err = locker.Try(ctx, "s")
			return err
		},
		held:  func(context.Context) error { return held.Err() },
		leave: func(ctx context.Context) error { return held.Release(ctx) },
	}, {
		name: "claim",
		take: func(ctx context.Context) error {
			run, err := guard.Begin(ctx, "s", "")
			claim = run.Claim
			return err
		},
		held:  func(context.Context) error { return claim.Err() },
		leave: func(ctx context.Context) error { return claim.Conclude(ctx, idempotency.NothingDone()) },
	}, {
		name: "reservation",
		take: func(ctx context.Context) (err error) {
			reserved, err = items.Reserve(ctx, "item", "buyer", rand.Text(), &stock.ReserveOptions{Renew: true})
			return err
		},
		held:  func(context.Context) error { return reserved.Err() },
		leave: func(ctx context.Context) error { return reserved.Cancel(ctx) },
	}}
}

// inBubble returns a store in a synctest bubble, on a client with these hooks, and one grant
// of each primitive.
func inBubble(t *testing.T, opts store.Options, hooks ...redis.Hook) (*store.Store, []*grants) {
	t.Helper()
	m := redistest.Bubble(t)
	rdb := redistest.BubbleClient(t, m)
	for _, h := range hooks {
		rdb.AddHook(h)
	}
	opts.Budget = time.Second
	st := storetest.Open(t, rdb, opts)
	return st, eachGrant(t, st)
}

// TestHooksThatDoNotReturn end neither the process nor a grant: leases are renewed once the
// hook is mended, and what a call may have granted or was to end is taken back.
func TestHooksThatDoNotReturn(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]*badHook{
		"a panic before it was sent":    {before: doPanic, after: doNothing},
		"a panic after it was answered": {before: doNothing, after: doPanic},
		"Goexit before it was sent":     {before: doExit, after: doNothing},
		"Goexit after it was answered":  {before: doNothing, after: doExit},
	} {
		for _, mode := range []store.QueueMode{store.Direct, store.Queued} {
			h := &badHook{before: h.before, after: h.after}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					st, all := inBubble(t, store.Options{Queue: mode}, h)
					ctx := context.WithValue(t.Context(), ofCaller{}, true)
					for _, g := range all {
						if err := g.take(ctx); err != nil {
							t.Fatalf("%s: got %v, want it granted", g.name, err)
						}
					}
					during := func(d time.Duration) {
						h.armed.Store(true)
						time.Sleep(d)
						h.armed.Store(false)
					}
					time.Sleep(panicLease / 6)
					h.met.Store(0)
					during(panicLease / 2) // the first renewal of each
					if n := h.met.Load(); n < int64(len(all)) {
						t.Errorf("calls that met the hook: got %d, want one for each of %d", n, len(all))
					}
					time.Sleep(4 * panicLease)
					for _, g := range all {
						if err := g.held(ctx); err != nil {
							t.Errorf("%s, some leases after its renewal met the hook: got %v, want it held", g.name, err)
						}
					}
					for _, at := range []struct {
						what string
						do   func(*grants)
					}{
						{"leaving", func(g *grants) { _ = g.leave(ctx) }},
						{"taking", func(g *grants) {
							if g.take(ctx) == nil { // otherwise Redis may have granted it
								_ = g.leave(ctx)
							}
						}},
					} {
						h.armed.Store(true)
						for _, g := range all {
							at.do(g)
						}
						time.Sleep(panicLease / 3) // what goes on in the background meets the hook too
						h.armed.Store(false)
						if err := st.Drain(ctx); err != nil {
							t.Errorf("%s, Drain: got %v, want no error", at.what, err)
						}
						time.Sleep(2 * panicLease) // what cannot be taken back lapses
						for _, g := range all {
							if err := g.take(ctx); err != nil {
								t.Errorf("%s after %s: got %v, want it granted", g.name, at.what, err)
							} else if err := g.leave(ctx); err != nil {
								t.Errorf("%s after %s: got %v, want it to end", g.name, at.what, err)
							}
						}
					}
					runtime.KeepAlive(all)
				})
			})
		}
	}
}

// TestHooksThatPanicInAll: a limiter that is asked on a goroutine of its own.
func TestHooksThatPanicInAll(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	h := &badHook{}
	var n atomic.Int64
	h.before = func(context.Context) {
		if n.Add(1)%2 == 0 {
			panic(errHook)
		}
	}
	h.after = doNothing
	rdb.AddHook(h)
	st := storetest.Open(t, rdb, store.Options{Prefix: redistest.Prefix(t), Queue: store.Direct, Budget: 10 * time.Second})
	var asks []limit.Ask
	for _, name := range []string{"one", "two", "three"} {
		l, err := limit.New(st, name, []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed, Budget: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		asks = append(asks, limit.Ask{Limiter: l, Subject: "s"})
	}
	if _, err := asks[2].Limiter.Take(t.Context(), "s"); err != nil { // so that the others are given back
		t.Fatal(err)
	}
	h.armed.Store(true)
	panicked := 0
	for range 10 {
		_, err := limit.All(t.Context(), asks...)
		if err != nil && !errors.Is(err, errHook) {
			t.Errorf("All: got %v, want no error or the panic of the hook", err)
		}
		if errors.Is(err, errHook) {
			panicked++
		}
	}
	if panicked == 0 {
		t.Error("got no panic of the hook: this test is about them")
	}
}

// garbled is a server that answers everything with an array of too many elements, which
// makes go-redis panic.
func garbled(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		ContextTimeoutEnabled: true, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				for from := bufio.NewScanner(far); from.Scan(); {
					if _, err := far.Write([]byte("*9223372036854775807\r\n")); err != nil {
						return
					}
				}
			}()
			return near, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// TestAGarbledReplyEndsOneCall, and not the process.
func TestAGarbledReplyEndsOneCall(t *testing.T) {
	t.Parallel()
	for _, mode := range []store.QueueMode{store.Direct, store.Queued} {
		st := storetest.Open(t, garbled(t), store.Options{Queue: mode, Budget: 200 * time.Millisecond, FirstContact: time.Millisecond})
		locker, err := lock.New(st, "locks", &lock.Options{Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := locker.Acquire(t.Context(), "s"); err == nil || errors.Is(err, script.ErrFailed) {
			t.Errorf("Acquire: got %v, want an error of a call without an answer", err)
		}
	}
}
