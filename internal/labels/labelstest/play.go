// Package labelstest plays what metrics have to count, on a real server and through an outage.
package labelstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
	"github.com/neap-go/neap/internal/redistest"
)

// Hostile is every subject, key, item, buyer and id of a play. No metric may show a part of it.
const Hostile = "h0stile\"} 1\nneap_redis_up{server=\"h0stile\\"

// Shows is a part of Hostile that no escaping changes.
const Shows = "h0stile"

// Play is what is called while a play goes on.
type Play struct {
	Held func() // one slot, lock, claim and reservation is held, and a caller waits for a permit and one for the lock
	Away func() // the server is lost, a breaker is open, and a conclusion of the guard is in the background
	Back func() // the server is back, and nothing is in the background
}

// player makes the calls, and notes what they count as.
type player struct {
	*testing.T

	st     *store.Store
	redis  *redistest.Server
	counts map[labels.Labels]int

	window, local, closed, open *limit.Limiter
	inflight                    *inflight.Limiter
	locker                      *lock.Locker
	guard                       *idempotency.Guard
	stock                       *stock.Stock
}

// Run plays on a server of its own and a store of it, which metrics must be told of already. It returns how often
// each outcome was met. A class that is not None is given as Unknown.
func (p Play) Run(t *testing.T, srv *redistest.Server, st *store.Store) map[labels.Labels]int {
	t.Helper()
	a := &player{T: t, st: st, redis: srv, counts: map[labels.Labels]int{}}
	a.make()
	a.limits()
	a.locks()
	a.claims()
	a.units()
	a.canceled()
	a.held(p.Held)
	a.outage(p)
	return a.counts
}

func (a *player) make() {
	var errs [8]error
	two := limit.FixedWindow{Name: "w", Limit: 2, Window: time.Hour}
	const ample = 5 * time.Second // calls that wait behind those of others must not fail on a busy machine
	a.window, errs[0] = limit.New(a.st, "seen", []limit.Policy{two, limit.Shadow(limit.FixedWindow{Name: "s", Limit: 1, Window: time.Hour})}, &limit.Options{Budget: ample})
	a.local, errs[1] = limit.New(a.st, "local", []limit.Policy{two}, &limit.Options{Budget: ample})
	a.closed, errs[2] = limit.New(a.st, "closed", []limit.Policy{two}, &limit.Options{Fail: store.FailClosed, Budget: ample})
	a.open, errs[3] = limit.New(a.st, "open", []limit.Policy{two}, &limit.Options{Fail: store.FailOpen, Budget: ample})
	a.inflight, errs[4] = inflight.New(a.st, "slots", 1, &inflight.Options{Budget: ample})
	a.locker, errs[5] = lock.New(a.st, "locks", &lock.Options{Budget: ample})
	a.guard, errs[6] = idempotency.New(a.st, "claims", idempotency.Reject{}, &idempotency.Options{Budget: ample})
	a.stock, errs[7] = stock.New(a.st, "units", &stock.Options{Budget: ample})
	a.must(errs[:]...)
}

func (a *player) must(errs ...error) {
	a.Helper()
	if err := errors.Join(errs...); err != nil {
		a.Fatal(err)
	}
}

func (a *player) is(what string, got, want error) {
	a.Helper()
	if !errors.Is(got, want) {
		a.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// call notes a call that Redis answered, and change a change.
func (a *player) call(of store.Primitive, name, policy string, o store.Outcome) {
	a.counts[labels.Labels{Primitive: of, Name: name, Policy: policy, Outcome: o}]++
}

func (a *player) change(of store.Primitive, name string, o store.Outcome) {
	a.counts[labels.Labels{Primitive: of, Name: name, Outcome: o, Change: true}]++
}

// without notes a call that Redis did not answer, or whose caller left.
func (a *player) without(of store.Primitive, name, policy string, o store.Outcome) {
	a.counts[labels.Labels{Primitive: of, Name: name, Policy: policy, Outcome: o, Class: labels.Unknown}]++
}

func (a *player) limits() {
	for n, want := range []bool{true, true, false} {
		d, err := a.window.Take(a.Context(), Hostile)
		a.must(err)
		if d.Allowed != want || d.Degraded {
			a.Fatalf("take %d: got %+v, want allowed: %t", n, d, want)
		}
	}
	a.call(store.Limit, "seen", "w", store.Granted)
	a.call(store.Limit, "seen", "w", store.Granted)
	a.call(store.Limit, "seen", "w", store.Denied)
	a.call(store.Limit, "seen", "s", store.ShadowDenied)
	a.call(store.Limit, "seen", "s", store.ShadowDenied)
	slot, err := a.inflight.Try(a.Context(), Hostile)
	a.must(err)
	a.call(store.InFlight, "slots", "inflight", store.Granted)
	full, err := a.inflight.Try(a.Context(), Hostile)
	a.must(err)
	if full.Allowed {
		a.Fatal("a second slot: got one, want none")
	}
	a.call(store.InFlight, "slots", "inflight", store.Denied)
	a.must(slot.Release(a.Context()))
}

func (a *player) locks() {
	held, err := a.locker.Try(a.Context(), Hostile)
	a.must(err)
	a.call(store.Lock, "locks", "", store.Granted)
	_, err = a.locker.Try(a.Context(), Hostile)
	a.is("a lock that is held", err, lock.ErrHeld)
	a.call(store.Lock, "locks", "", store.Held)
	_, err = a.locker.ForceRelease(a.Context(), Hostile)
	a.must(err)
	a.is("the release of a lock that was taken away", held.Release(a.Context()), lock.ErrLost)
	a.change(store.Lock, "locks", store.Lost)
}

func (a *player) claims() {
	begin := func(key string, outcome store.Outcome, want error) *idempotency.Claim {
		a.Helper()
		answer, err := a.guard.Begin(a.Context(), key+Hostile, "print")
		a.is("Begin of "+key, err, want)
		a.call(store.Guard, "claims", "", outcome)
		return answer.Claim
	}
	done := begin("done", store.Granted, nil)
	begin("done", store.Held, idempotency.ErrInFlight)
	a.must(done.Conclude(a.Context(), idempotency.DoneWith([]byte(Hostile))))
	a.change(store.Guard, "claims", store.Completed)
	begin("done", store.Replayed, nil)
	_, err := a.guard.Begin(a.Context(), "done"+Hostile, "another")
	a.is("Begin with another fingerprint", err, idempotency.ErrMismatch)
	a.call(store.Guard, "claims", "", store.Mismatched)

	a.must(begin("gone", store.Granted, nil).Conclude(a.Context(), idempotency.DoneWithout()))
	a.change(store.Guard, "claims", store.Completed)
	begin("gone", store.NoResult, idempotency.ErrNoResult)

	a.must(begin("doubt", store.Granted, nil).Conclude(a.Context(), idempotency.Unknown()))
	a.change(store.Guard, "claims", store.InDoubt)
	begin("doubt", store.InDoubt, idempotency.ErrInDoubt)
	begin("doubt", store.InDoubt, idempotency.ErrInDoubt)

	a.must(begin("free", store.Granted, nil).Conclude(a.Context(), idempotency.NothingDone()))
	a.change(store.Guard, "claims", store.Abandoned)

	lost := begin("lost", store.Granted, nil)
	a.forget("lost")
	a.is("a conclusion without a record", lost.Conclude(a.Context(), idempotency.Unknown()), idempotency.ErrLost)
	a.change(store.Guard, "claims", store.Lost)

	first := begin("overtaken", store.Granted, nil)
	a.forget("overtaken")
	second := begin("overtaken", store.Granted, nil)
	a.is("the conclusion of who was overtaken", first.Conclude(a.Context(), idempotency.DoneWith(nil)), idempotency.ErrLost)
	a.change(store.Guard, "claims", store.Overtaken)
	a.must(second.Conclude(a.Context(), idempotency.NothingDone()))
	a.change(store.Guard, "claims", store.Abandoned)
}

func (a *player) forget(key string) {
	a.Helper()
	_, err := a.guard.Forget(a.Context(), key+Hostile)
	a.must(err)
}

func (a *player) units() {
	_, err := a.stock.Open(a.Context(), Hostile, 2, time.Now().Add(time.Hour))
	a.must(err)
	reserve := func(buyer, id string, units int64, outcome store.Outcome, want error) *stock.Reservation {
		a.Helper()
		r, err := a.stock.Reserve(a.Context(), Hostile, buyer+Hostile, id+Hostile, &stock.ReserveOptions{Quantity: units})
		a.is("Reserve of "+buyer, err, want)
		a.call(store.Stock, "units", "", outcome)
		return r
	}
	ann := reserve("ann", "1", 1, store.Granted, nil)
	reserve("ann", "2", 1, store.Refused, stock.ErrYours)
	reserve("ben", "1", 2, store.Denied, stock.ErrSoldOut)
	a.must(ann.Confirm(a.Context()))
	a.change(store.Stock, "units", store.Completed)
	a.must(ann.Cancel(a.Context()))
	a.change(store.Stock, "units", store.Abandoned)

	late := reserve("ann", "3", 2, store.Granted, nil)
	again, err := a.stock.Resume(Hostile, "ann"+Hostile, "3"+Hostile, &stock.ReserveOptions{Quantity: 2})
	a.must(err, again.Cancel(a.Context()))
	a.change(store.Stock, "units", store.Abandoned)
	ben := reserve("ben", "2", 2, store.Granted, nil)
	a.is("Confirm when all is another's", late.Confirm(a.Context()), stock.ErrLapsed)
	a.change(store.Stock, "units", store.Lost)

	_, err = a.stock.Forget(a.Context(), Hostile)
	a.must(err)
	a.is("Confirm of what is gone", ben.Confirm(a.Context()), stock.ErrUnknown)
	a.change(store.Stock, "units", store.Refused)
	a.must(ignore(ben.Cancel(a.Context()), stock.ErrUnknown))
	a.change(store.Stock, "units", store.Abandoned)

	_, err = a.stock.Open(a.Context(), Hostile, 2, time.Now().Add(time.Hour))
	a.must(err)
	cat := reserve("cat", "1", 1, store.Granted, nil)
	admin := a.redis.Admin(a.T)
	keys, err := admin.Keys(a.Context(), "*:stock:units:*").Result()
	a.must(err)
	for _, key := range keys {
		a.must(admin.HSet(a.Context(), key, "left", 9).Err())
	}
	reserve("dan", "1", 1, store.Disagreed, stock.ErrDisagrees)
	a.is("Confirm of an edited item", cat.Confirm(a.Context()), stock.ErrDisagrees)
	a.change(store.Stock, "units", store.Disagreed)
	_, err = a.stock.Forget(a.Context(), Hostile)
	a.must(err, ignore(cat.Cancel(a.Context()), stock.ErrUnknown))
	a.change(store.Stock, "units", store.Abandoned)
	_, err = a.stock.Open(a.Context(), Hostile, 2, time.Now().Add(time.Hour))
	a.must(err)
}

func ignore(err, one error) error {
	if errors.Is(err, one) {
		return nil
	}
	return err
}

// canceled has callers leave before they ask.
func (a *player) canceled() {
	ctx, leave := context.WithCancel(a.Context())
	leave()
	a.is("Take", second(a.window.Take(ctx, Hostile)), context.Canceled)
	a.without(store.Limit, "seen", "", store.Canceled)
	a.is("Try of a slot", second(a.inflight.Try(ctx, Hostile)), context.Canceled)
	a.without(store.InFlight, "slots", "", store.Canceled)
	a.is("Try of a lock", second(a.locker.Try(ctx, Hostile)), context.Canceled)
	a.without(store.Lock, "locks", "", store.Canceled)
	a.is("Begin", second(a.guard.Begin(ctx, Hostile, "")), context.Canceled)
	a.without(store.Guard, "claims", "", store.Canceled)
	a.is("Reserve", second(a.stock.Reserve(ctx, Hostile, Hostile, Hostile, nil)), context.Canceled)
	a.without(store.Stock, "units", "", store.Canceled)
}

func second[T any](_ T, err error) error { return err }

// held holds one of each while callers wait.
func (a *player) held(then func()) {
	slot, err := a.inflight.Try(a.Context(), "held"+Hostile)
	a.must(err)
	a.call(store.InFlight, "slots", "inflight", store.Granted)
	held, err := a.locker.Try(a.Context(), "held"+Hostile)
	a.must(err)
	a.call(store.Lock, "locks", "", store.Granted)
	answer, err := a.guard.Begin(a.Context(), "held"+Hostile, "")
	a.must(err)
	a.call(store.Guard, "claims", "", store.Granted)
	r, err := a.stock.Reserve(a.Context(), Hostile, Hostile, Hostile, nil)
	a.must(err)
	a.call(store.Stock, "units", "", store.Granted)

	// A caller that waits for permits has an event only if it leaves while Redis has not answered it yet.
	asking := 0
	stop := a.st.Observe(func(_ context.Context, e store.Event) {
		if e.Primitive == store.Limit {
			asking++
		}
	})
	defer stop()
	ctx, leave := context.WithCancel(a.Context())
	left := make(chan error, 2)
	go func() { left <- second(a.window.Wait(ctx, Hostile)) }()
	go func() { left <- second(a.locker.Acquire(ctx, "held"+Hostile)) }()
	redistest.Await(a, 20*time.Second, "two callers to wait", func() bool {
		waiting := 0
		for _, g := range a.st.Gauges() {
			waiting += g.Waiting
		}
		return waiting == 2
	})
	then()
	leave()
	a.is("the first that waited", <-left, context.Canceled)
	a.is("the second that waited", <-left, context.Canceled)
	for range asking {
		a.without(store.Limit, "seen", "", store.Canceled)
	}
	a.without(store.Lock, "locks", "", store.Canceled)
	a.must(slot.Release(a.Context()), held.Release(a.Context()), answer.Claim.Conclude(a.Context(), idempotency.NothingDone()), r.Cancel(a.Context()))
	a.change(store.Guard, "claims", store.Abandoned)
	a.change(store.Stock, "units", store.Abandoned)
}
