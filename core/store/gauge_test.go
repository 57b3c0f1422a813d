package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// TestGauges: there is one for each primitive, in the order in which they were made, and
// one for the server.
func TestGauges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		other, err := s.limit.With(limit.TokenBucket{Rate: 1, Per: time.Second, Burst: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Take(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		want := []store.Gauge{
			{Primitive: store.Limit, Name: "n", Policies: []string{"window-1000000-1h"}},
			{Primitive: store.InFlight, Name: "n", Policies: []string{"inflight"}, Active: 1},
			{Primitive: store.Lock, Name: "n", Active: 1},
			{Primitive: store.Guard, Name: "n", Active: 3},
			{Primitive: store.Stock, Name: "n", Active: 3},
			{Primitive: store.Server, Name: "*store_test.fading"},
		}
		are(t, "while all is held", s.store.Gauges(), want)
		if err := errors.Join(s.slot.Release(t.Context()), s.held.Release(t.Context()), s.claims[0].Conclude(t.Context(), idempotency.NothingDone()), s.units[0].Cancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		want[1].Active, want[2].Active, want[3].Active, want[4].Active = 0, 0, 2, 2
		are(t, "after releases", s.store.Gauges(), want)
		s.finish(t)
	})
}

// TestGaugesOfAnOutage report which calls are held back, for how long the server has not
// answered, and what is concluded in the background.
func TestGaugesOfAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		began := time.Now()
		server := func() store.Gauge {
			all := s.store.Gauges()
			return all[len(all)-1]
		}
		s.rdb.gone.Store(true)
		for range 2 {
			if _, err := s.lock.Inspect(t.Context(), "other"); err == nil {
				t.Fatal("Inspect with Redis gone: got an answer, want an error")
			}
		}
		if g := server(); g.Failing <= 0 || g.Lost || g.Open {
			t.Errorf("the server after two failures: got %+v, want it failing and not lost", g)
		}
		s.open(t)
		if err := s.claims[0].Conclude(t.Context(), idempotency.DoneWith(nil)); err == nil {
			t.Fatal("Complete with Redis gone: got no error, want one")
		}
		if g := server(); !g.Open || !g.Lost || g.Failing <= 0 || g.Failing > time.Since(began) {
			t.Errorf("the server: got %+v; want it lost, open, and failing since %v ago", g, time.Since(began))
		}
		all := s.store.Gauges()
		if all[0].Open || all[1].Open {
			t.Error("limits, which have another breaker: got them open, want them closed")
		}
		if guard := all[3]; guard.Background != 1 {
			t.Errorf("the guard: got %d conclusions in the background, want 1", guard.Background)
		}
		for range 100 {
			if _, err := s.limit.Peek(t.Context(), "s"); err == nil {
				t.Fatal("Peek with Redis gone: got an answer, want an error")
			}
		}
		if all = s.store.Gauges(); !all[0].Open || !all[1].Open {
			t.Errorf("after failures of limits: got open %t and %t, want both", all[0].Open, all[1].Open)
		}
		s.finish(t)
		if g := server(); g.Open || g.Lost || g.Failing != 0 {
			t.Errorf("the server that is back: got %+v, want it answering", g)
		}
	})
}

// TestGaugesForgetAnOutage after a minute without a call, because the server may be back.
func TestGaugesForgetAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.open(t)
		server := func() store.Gauge {
			all := s.store.Gauges()
			return all[len(all)-1]
		}
		if g := server(); !g.Open || !g.Lost || g.Failing == 0 {
			t.Errorf("during the outage: got %+v, want it open, lost and failing", g)
		}
		time.Sleep(5 * time.Minute) // in which every lease ends, and nothing is asked
		if g := server(); g.Open || g.Lost || g.Failing != 0 {
			t.Errorf("after minutes without a call: got %+v, want nothing known", g)
		}
		s.finish(t)
	})
}

// TestGaugesOfWhoWaits count the callers that wait for a lock and for permits.
func TestGaugesOfWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		slow, err := limit.New(s.store, "slow", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Minute}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := slow.Take(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		waiting, err := s.lock.WithWait(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			go func() { _, _ = slow.WaitFor(t.Context(), "s", 1, 3*time.Minute) }()
			go func() { _, _ = waiting.As("another").Acquire(t.Context(), "held") }()
		}
		synctest.Wait()
		all := s.store.Gauges()
		if all[2].Waiting != 2 || all[5].Waiting != 2 {
			t.Errorf("got %d callers waiting for the lock and %d for the limit, want 2 and 2", all[2].Waiting, all[5].Waiting)
		}
		time.Sleep(4 * time.Minute)
		s.finish(t)
	})
}

// TestGaugesKeepNothingAlive: a primitive that is no longer used has no gauge. What With,
// As and WithWait returned counts as use.
func TestGaugesKeepNothingAlive(t *testing.T) {
	t.Parallel()
	rdb := unused(t)
	st := of(t, rdb)
	policies := []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Minute}}
	var plan *limit.Limiter
	var owner *lock.Locker
	func() {
		var errs [7]error
		_, errs[0] = limit.New(st, "gone", policies, nil)
		_, errs[1] = inflight.New(st, "gone", 1, nil)
		_, errs[2] = lock.New(st, "gone", nil)
		_, errs[3] = idempotency.New(st, "gone", idempotency.Retry{}, nil)
		_, errs[4] = stock.New(st, "gone", nil)
		var kept *limit.Limiter
		var locker *lock.Locker
		kept, errs[5] = limit.New(st, "kept", policies, nil)
		locker, errs[6] = lock.New(st, "kept", nil)
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		var err error
		if plan, err = kept.With(limit.FixedWindow{Limit: 2, Window: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if plan, err = plan.With(limit.FixedWindow{Limit: 3, Window: time.Minute}); err != nil {
			t.Fatal(err)
		}
		owner = locker.As("owner")
	}()
	redistest.Await(t, 20*time.Second, "what is not used any more to have no gauge", func() bool {
		runtime.GC()
		return len(st.Gauges()) == 2
	})
	for _, g := range st.Gauges() {
		if g.Name != "kept" {
			t.Errorf("gauges: got one of a %s %q, want only those in use", g.Primitive, g.Name)
		}
	}
	_, _ = plan.Name(), owner.Name()
}

// TestGaugesOfNoStore: there are none.
func TestGaugesOfNoStore(t *testing.T) {
	t.Parallel()
	for _, st := range []*store.Store{nil, {}} {
		if all := st.Gauges(); all != nil {
			t.Errorf("the gauges of no store: got %v, want none", all)
		}
	}
}

func are(t *testing.T, when string, got, want []store.Gauge) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b store.Gauge) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("%s: got %+v, want %+v", when, got, want)
	}
}
