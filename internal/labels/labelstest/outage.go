package labelstest

import (
	"errors"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
	"github.com/neap-go/neap/internal/redistest"
)

// outage stops the server, and starts it again.
func (a *player) outage(p Play) {
	late, err := a.guard.Begin(a.Context(), "late"+Hostile, "")
	a.must(err)
	a.call(store.Guard, "claims", "", store.Granted)
	a.redis.Stop(a.T)
	a.fails("Complete", late.Claim.Conclude(a.Context(), idempotency.DoneWith(nil)))
	a.change(store.Guard, "claims", store.Completed) // once Redis is back
	for _, want := range []store.Outcome{store.Granted, store.Denied} {
		d, err := a.local.TakeN(a.Context(), Hostile, 2)
		a.must(err)
		if !d.Degraded || d.Allowed != (want == store.Granted) {
			a.Fatalf("a take without Redis: got %+v, want it degraded and %s", d, want)
		}
		a.without(store.Limit, "local", "w", want)
	}
	a.must(second(a.open.Take(a.Context(), Hostile)))
	a.without(store.Limit, "open", "", store.Granted)
	a.fails("Take", second(a.closed.Take(a.Context(), Hostile)))
	a.without(store.Limit, "closed", "", store.Failed)
	slot, err := a.inflight.Try(a.Context(), Hostile)
	a.must(err)
	a.without(store.InFlight, "slots", "inflight", store.Granted)
	a.must(second(a.inflight.Try(a.Context(), Hostile)))
	a.without(store.InFlight, "slots", "inflight", store.Denied)
	a.must(slot.Release(a.Context()))
	a.fails("Try", second(a.locker.Try(a.Context(), Hostile)))
	a.without(store.Lock, "locks", "", store.Failed)
	a.fails("Begin", second(a.guard.Begin(a.Context(), Hostile, "")))
	a.without(store.Guard, "claims", "", store.Failed)
	a.fails("Reserve", second(a.stock.Reserve(a.Context(), Hostile, Hostile, Hostile, nil)))
	a.without(store.Stock, "units", "", store.Failed)

	peek := func() error { return second(a.closed.Peek(a.Context(), Hostile)) } // no observer is told of it
	redistest.Await(a, 20*time.Second, "a breaker to open", func() bool {
		a.fails("Peek", peek())
		return a.server().Open
	})
	a.counts[labels.Labels{Primitive: store.Server, Name: a.redis.Addr(), Outcome: store.Lost, Class: labels.Unknown, Change: true}]++
	if a.background() == 0 {
		a.Fatal("without Redis: nothing is in the background, want the conclusion")
	}
	p.Away()
	a.redis.Start(a.T)
	redistest.Await(a, 30*time.Second, "the server to be back, and the background to be done", func() bool {
		_, _ = peek(), second(a.window.Peek(a.Context(), Hostile)) // the breakers of both budgets of limits close
		return a.server().Failing == 0 && a.background() == 0
	})
	a.change(store.Server, a.redis.Addr(), store.Back)
	p.Back()
}

func (a *player) fails(what string, err error) {
	a.Helper()
	if _, is := errors.AsType[*script.Error](err); !is {
		a.Fatalf("%s without Redis: got %v, want an error of a script", what, err)
	}
}

func (a *player) background() (calls int) {
	for _, n := range Background(a.st) {
		calls += n
	}
	return calls
}

// Background is how many calls a store repeats or takes back, of each primitive that can.
func Background(st *store.Store) map[labels.Labels]int {
	calls := map[labels.Labels]int{}
	for _, g := range st.Gauges() {
		if g.Primitive != store.Limit && g.Primitive != store.Server {
			calls[labels.Labels{Primitive: g.Primitive, Name: g.Name}] = g.Background
		}
	}
	return calls
}

func (a *player) server() store.Gauge {
	for _, g := range a.st.Gauges() {
		if g.Primitive == store.Server {
			return g
		}
	}
	a.Fatal("the store has no server")
	return store.Gauge{}
}
