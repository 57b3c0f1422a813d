package store_test

import (
	"context"
	"errors"
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
)

// fading answers until it is gone, and then no longer.
type fading struct {
	*redis.Client

	gone  atomic.Bool
	calls atomic.Int64
}

func (f *fading) Process(ctx context.Context, cmd redis.Cmder) error {
	if !f.gone.Load() {
		return f.Client.Process(ctx, cmd)
	}
	f.calls.Add(1)
	redistest.Write(cmd)
	<-ctx.Done()
	cmd.SetErr(ctx.Err())
	return ctx.Err()
}

// shop is one of each primitive on one store, and what each was granted.
type shop struct {
	rdb   *fading
	store *store.Store
	limit *limit.Limiter
	slots *inflight.Limiter
	lock  *lock.Locker
	guard *idempotency.Guard
	stock *stock.Stock

	slot   *inflight.Slot
	held   *lock.Lock
	claims [3]*idempotency.Claim
	units  [3]*stock.Reservation
}

func newShop(t *testing.T) *shop {
	t.Helper()
	m := redistest.Bubble(t)
	client := redistest.BubbleClient(t, m)
	s := &shop{rdb: &fading{Client: client}}
	st := of(t, s.rdb)
	s.store = st
	var errs [16]error
	s.limit, errs[0] = limit.New(st, "n", []limit.Policy{limit.FixedWindow{Limit: 1e6, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed})
	s.slots, errs[1] = inflight.New(st, "n", 10, &inflight.Options{Fail: store.FailClosed, Lease: time.Hour})
	s.lock, errs[2] = lock.New(st, "n", &lock.Options{Lease: time.Hour})
	s.guard, errs[3] = idempotency.New(st, "n", idempotency.Retry{}, &idempotency.Options{Lease: time.Hour})
	s.stock, errs[4] = stock.New(st, "n", &stock.Options{Lease: time.Hour})
	ctx := t.Context()
	s.slot, errs[5] = s.slots.Try(ctx, "s")
	s.held, errs[6] = s.lock.Try(ctx, "held")
	for i := range s.claims {
		var run idempotency.Answer
		run, errs[7+i] = s.guard.Begin(ctx, string(rune('a'+i)), "")
		s.claims[i] = run.Claim
	}
	_, errs[10] = s.stock.Open(ctx, "item", 10, time.Now().Add(10*time.Hour))
	for i := range s.units {
		s.units[i], errs[11+i] = s.stock.Reserve(ctx, "item", string(rune('a'+i)), "id", nil)
	}
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return s
}

// asks are calls that grant something. ends are calls that must work for what was
// granted.
func (s *shop) asks() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Try of a slot": func(ctx context.Context) error { _, err := s.slots.Try(ctx, "s"); return err },
		"Try of a lock": func(ctx context.Context) error { _, err := s.lock.Try(ctx, "other"); return err },
		"Begin":         func(ctx context.Context) error { _, err := s.guard.Begin(ctx, "other", ""); return err },
		"Reserve": func(ctx context.Context) error {
			_, err := s.stock.Reserve(ctx, "item", "other", "id", nil)
			return err
		},
		"Inspect of a lock":   func(ctx context.Context) error { _, err := s.lock.Inspect(ctx, "other"); return err },
		"Inspect of a record": func(ctx context.Context) error { _, err := s.guard.Inspect(ctx, "other"); return err },
		"Left":                func(ctx context.Context) error { _, err := s.stock.Left(ctx, "item"); return err },
	}
}

func (s *shop) ends() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Release of a slot":       s.slot.Release,
		"Extend of a lock":        func(ctx context.Context) error { return s.held.Extend(ctx, time.Hour) },
		"Renew of a claim":        s.claims[0].Renew,
		"Complete":                func(ctx context.Context) error { return s.claims[1].Conclude(ctx, idempotency.DoneWith(nil)) },
		"Abandon":                 func(ctx context.Context) error { return s.claims[2].Conclude(ctx, idempotency.NothingDone()) },
		"Renew of a reservation":  s.units[0].Renew,
		"Confirm":                 s.units[1].Confirm,
		"Cancel of a reservation": s.units[2].Cancel,
		"Release of a lock":       s.held.Release,
	}
}

// open makes calls of 250 ms fail until their breaker opens.
func (s *shop) open(t *testing.T) {
	t.Helper()
	s.rdb.gone.Store(true)
	for range 100 {
		if _, err := s.lock.Inspect(t.Context(), "other"); err == nil {
			t.Fatal("Inspect with Redis gone: got an answer, want an error")
		}
	}
}

// TestABreakerSparesEveryPrimitive: after Redis did not answer some primitives, none of
// them waits for it. The limiter has a breaker of its own, because its budget is smaller.
func TestABreakerSparesEveryPrimitive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.open(t)
		before := s.rdb.calls.Load()
		for name, ask := range s.asks() {
			if name == "Try of a slot" {
				continue // which has the budget of limits
			}
			began := time.Now()
			err := ask(t.Context())
			if took := time.Since(began); took > 0 || !errors.Is(err, script.ErrNotExecuted) {
				t.Errorf("%s while the breaker is open: got it after %v, with %v; want no wait, and ErrNotExecuted", name, took, err)
			}
		}
		if sent := s.rdb.calls.Load() - before; sent != 0 {
			t.Errorf("while the breaker is open: got %d calls sent, want 0", sent)
		}
		if s.limit.Stats().Open {
			t.Error("failures of calls of 250 ms: got the breaker of calls of 50 ms open, want it closed")
		}
		s.finish(t)
	})
}

// TestWhatEndsSomethingPassesAnOpenBreaker: a call that ends or keeps what somebody holds
// is sent at once, and works as soon as Redis answers.
func TestWhatEndsSomethingPassesAnOpenBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		for name, end := range s.ends() {
			if name == "Release of a lock" || name == "Confirm" {
				continue // they end what others renew
			}
			s.passes(t, name, end)
		}
		s.passes(t, "Confirm", s.ends()["Confirm"])
		s.passes(t, "Release of a lock", s.ends()["Release of a lock"])
		s.finish(t)
	})
}

// passes opens the breaker of a call, and then lets Redis answer again. Nothing else has
// asked since then.
func (s *shop) passes(t *testing.T, name string, end func(context.Context) error) {
	t.Helper()
	ask := func() error { _, err := s.lock.Inspect(t.Context(), "other"); return err }
	if name == "Release of a slot" { // whose budget is that of limits
		ask = func() error { _, err := s.limit.Take(t.Context(), "s"); return err }
	}
	s.rdb.gone.Store(true)
	for range 100 {
		if ask() == nil {
			t.Fatalf("a call before %s, with Redis gone: got an answer, want an error", name)
		}
	}
	s.rdb.gone.Store(false)
	if err := ask(); !errors.Is(err, script.ErrNotExecuted) {
		t.Fatalf("a call before %s: got %v, want ErrNotExecuted of an open breaker", name, err)
	}
	if err := end(t.Context()); err != nil {
		t.Errorf("%s while the breaker is open: got %v, want no error", name, err)
	}
	time.Sleep(time.Second)
}

// finish waits until what runs in the background has ended.
func (s *shop) finish(t *testing.T) {
	t.Helper()
	s.rdb.gone.Store(false)
	time.Sleep(time.Second)
	for name, end := range s.ends() {
		if err := end(context.Background()); err != nil {
			t.Logf("%s at the end: got %v, want no error", name, err)
		}
	}
	time.Sleep(10 * time.Second)
}
