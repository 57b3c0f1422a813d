package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
)

// recorded is an observer that stores what it is told.
type recorded struct {
	mu       sync.Mutex
	all      []store.Event
	mistaken []store.Event // a call for a change, or a change for a call
}

func (r *recorded) observe(_ context.Context, e store.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, e)
	if e.Change != slices.Contains(changes, e.Outcome) {
		r.mistaken = append(r.mistaken, e)
	}
}

// changes are the outcomes that only changes have here.
var changes = []store.Outcome{store.Completed, store.Abandoned, store.Lost, store.Back}

// take returns the outcomes of each primitive since the last call.
func (r *recorded) take() map[store.Primitive][]store.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[store.Primitive][]store.Outcome{}
	for _, e := range r.all {
		all[e.Primitive] = append(all[e.Primitive], e.Outcome)
	}
	r.all = nil
	return all
}

func (r *recorded) are(t *testing.T, when string, want map[store.Primitive][]store.Outcome) {
	t.Helper()
	synctest.Wait()
	got := r.take()
	for _, all := range got {
		slices.Sort(all)
	}
	for _, all := range want {
		slices.Sort(all)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", when, got, want)
	}
	if len(r.mistaken) > 0 {
		t.Errorf("%s: got Change wrong in %+v, want it true for changes only", when, r.mistaken)
	}
}

// TestObserversHearOfEveryPrimitive: an observer gets one event for each call on the
// store, and one for each lock and claim that is lost, whoever made the primitive, and
// whenever.
func TestObserversHearOfEveryPrimitive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newShop(t), new(recorded)
		ctx := t.Context()
		remove := s.store.Observe(r.observe)
		if _, err := s.limit.Take(ctx, "s"); err != nil {
			t.Fatal(err)
		}
		for name, ask := range s.asks() {
			if err := ask(ctx); err != nil {
				t.Errorf("%s: got %v, want no error", name, err)
			}
		}
		for name, again := range s.asks() {
			if err := again(ctx); name == "Begin" && err == nil || name == "Try of a lock" && err == nil {
				t.Errorf("%s again: got no error, want one", name)
			}
		}
		r.are(t, "two calls of each", map[store.Primitive][]store.Outcome{
			store.Limit: {store.Granted}, store.InFlight: {store.Granted, store.Granted}, store.Lock: {store.Granted, store.Held},
			store.Guard: {store.Granted, store.Held}, store.Stock: {store.Granted, store.Granted},
		})
		if err := errors.Join(s.claims[1].Conclude(ctx, idempotency.DoneWith(nil)), s.claims[2].Conclude(ctx, idempotency.NothingDone()), s.units[0].Confirm(ctx), s.units[1].Cancel(ctx)); err != nil {
			t.Fatal(err)
		}
		r.are(t, "conclusions", map[store.Primitive][]store.Outcome{
			store.Guard: {store.Completed, store.Abandoned}, store.Stock: {store.Completed, store.Abandoned},
		})
		if _, err := s.guard.Forget(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.lock.ForceRelease(ctx, "held"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(45 * time.Minute) // renewals find out
		r.are(t, "locks and claims that were taken away", map[store.Primitive][]store.Outcome{
			store.Lock: {store.Lost}, store.Guard: {store.Lost},
		})
		remove()
		if _, err := s.limit.Take(ctx, "s"); err != nil {
			t.Fatal(err)
		}
		r.are(t, "an observer that was removed", map[store.Primitive][]store.Outcome{})
		s.finish(t)
	})
}

// TestObserversHearOfALostReservation when its lease ends. They are not told again when
// its units belong to another buyer and it is confirmed.
func TestObserversHearOfALostReservation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newShop(t), new(recorded)
		ctx := t.Context()
		if err := errors.Join(s.units[1].Confirm(ctx), s.units[2].Cancel(ctx)); err != nil {
			t.Fatal(err)
		}
		s.store.Observe(r.observe)
		time.Sleep(2 * time.Hour)
		r.are(t, "a lease that ended", map[store.Primitive][]store.Outcome{store.Stock: {store.Lost}})
		all := &stock.ReserveOptions{Quantity: 9, Confirm: true}
		if _, err := s.stock.Reserve(ctx, "item", "other", "id", all); err != nil {
			t.Fatal(err)
		}
		if err := s.units[0].Confirm(ctx); !errors.Is(err, stock.ErrLapsed) {
			t.Errorf("Confirm when the item is sold out: got %v, want %v", err, stock.ErrLapsed)
		}
		r.are(t, "Confirm when the item is sold out", map[store.Primitive][]store.Outcome{store.Stock: {store.Granted}})
		s.finish(t)
	})
}

// TestObserversHearOfAnOutage: events have the class of each failure and how long it
// took. Others say that the server is lost, and that it is back and how long it was lost.
func TestObserversHearOfAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newShop(t), new(recorded)
		s.store.Observe(r.observe)
		s.rdb.gone.Store(true)
		if _, err := s.lock.Try(t.Context(), "other"); err == nil {
			t.Fatal("Try with Redis gone: got an answer, want an error")
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.guard.Begin(gone, "other", ""); !errors.Is(err, context.Canceled) {
			t.Fatalf("Begin with a canceled context: got %v, want context.Canceled", err)
		}
		if len(r.all) != 2 || r.all[0].Class != script.ErrMaybeExecuted || r.all[0].Duration != script.DefaultBudget || r.all[0].Name != "n" ||
			r.all[1].Outcome != store.Canceled || r.all[1].Class != context.Canceled {
			t.Errorf("got %+v, want a lock that failed after its budget, and a caller that went away", r.all)
		}
		r.take()
		for range 10 {
			if _, err := s.lock.Inspect(t.Context(), "other"); err == nil {
				t.Fatal("Inspect with Redis gone: got an answer, want an error")
			}
		}
		s.rdb.gone.Store(false)
		time.Sleep(2 * time.Second)
		if _, err := s.lock.Inspect(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var server []store.Event
		for _, e := range r.all {
			if e.Primitive == store.Server {
				server = append(server, e)
			}
		}
		if len(server) != 2 || server[0].Outcome != store.Lost || server[0].Class != script.ErrMaybeExecuted || !server[0].Change || !server[1].Change ||
			server[1].Outcome != store.Back || server[1].Class != nil || server[1].Duration < 2*time.Second || server[0].Name != server[1].Name {
			t.Errorf("got %+v, want that the server is lost, and back after some seconds", server)
		}
		s.finish(t)
	})
}

// TestOnlyRedisHasAClass: an error that comes neither from Redis nor from a context has
// no class.
func TestOnlyRedisHasAClass(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]error{
		lock.ErrLate: nil, lock.ErrExpired: nil, context.Canceled: context.Canceled,
		&script.Error{Class: script.ErrNotExecuted}: script.ErrNotExecuted,
	} {
		if got := store.ClassOf(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("the class of %v: got %v, want %v", err, got, want)
		}
	}
}

// TestSeveralObservers: each observer is told, a function as often as it was added. If one
// panics, the others are still told.
func TestSeveralObservers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		var first, second recorded
		st, err := store.Open(s.rdb, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []store.Observer{first.observe, nil, func(context.Context, store.Event) { panic("an observer") }} {
			st.Observe(o)
		}
		removes := []func(){st.Observe(second.observe), st.Observe(second.observe), st.Observe(nil)}
		for n, want := range []int{2, 1, 0, 0} {
			st.Notify(t.Context(), store.Event{Primitive: store.Lock, Outcome: store.Granted})
			if a, b := len(first.all), len(second.all); a != 1 || b != want {
				t.Errorf("%d observers removed: got %d and %d events, want 1 and %d", n, a, b, want)
			}
			first.take()
			second.take()
			if n < len(removes) {
				removes[n]()
				removes[n]() // again changes nothing
			}
		}
		s.finish(t)
	})
}

// TestAnEventAllocatesNothing, with an observer or without.
func TestAnEventAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	st, err := store.Open(unused(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := store.Event{Primitive: store.Lock, Name: "n", Outcome: store.Granted}
	began := time.Now()
	for name, o := range map[string]store.Observer{"no observer": nil, "an observer": func(context.Context, store.Event) {}} {
		remove := st.Observe(o)
		if n := testing.AllocsPerRun(100, func() { ask.Notify(t.Context(), st, e, began, nil) }); n > 0 {
			t.Errorf("%s: got %v allocations for an event, want none", name, n)
		}
		remove()
	}
}
