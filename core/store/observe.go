package store

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// Event is one call that asked a primitive, or a change. Changes are: a claim or a
// reservation is concluded; a lock, a claim or a reservation is lost; a server no longer
// answers, or answers again. Events are for metrics and traces. An event has no key, no
// subject and no text of an error.
type Event struct {
	// Primitive says what the event is about.
	Primitive Primitive
	// Name is the name that New was given. For a server it is the address.
	Name string
	// Policy is the policy that decided, or that would have decided. Only limits and
	// requests in flight have one.
	Policy string
	// Outcome is how it ended.
	Outcome Outcome
	// Change is true for a change, and false for a call that asked. It tells a claim that
	// ends in doubt from a Begin that finds a claim in doubt.
	Change bool
	// Banned is true if the outcome is a denial because the subject is banned
	// (limit.WithBan).
	Banned bool
	// OnHold is true if the outcome is a denial because the subject is on hold
	// (limit.Limiter.Hold).
	OnHold bool
	// Cost is how many permits or units it is about; 0 if the primitive has none.
	Cost int64
	// Class is one of the four classes of package script if Redis did not answer as it
	// should, even if the decision was then made without Redis. If the caller's context
	// ended first, it is the error of that context. Otherwise it is nil.
	Class error
	// Duration is how long the call took. For a server that is lost or back, it is the
	// time since the server's first failure. For any other change it is 0.
	Duration time.Duration
}

// Observer receives an event for each of these:
//
//   - a decision of a limiter, and a slot that was asked for
//   - an attempt to get a lock, a claim or a reservation, once it has ended
//   - a conclusion of a claim or a reservation that Redis has answered
//   - a lock, claim or reservation that is lost
//   - a server that is lost or back
//
// It does not receive what operators ask, such as Peek and Inspect, nor renewals,
// releases and refunds.
//
// It runs on the goroutine of the call. For a server, for a loss, and for what the
// library does in the background, it may run on another goroutine. So it must be quick
// and safe for concurrent use. The context is the caller's. For a loss, a server and the
// background, the context does not end. If an observer panics, the panic is swallowed and
// logged to slog.Default, without its value. If it ends the goroutine, as runtime.Goexit
// does, the caller gets no answer. A slot, a lock, a claim or a reservation is then given
// back; the permits of a limit stay taken. Events of a server cost no caller its answer.
type Observer func(ctx context.Context, e Event)

// Primitive is what an event is about.
type Primitive string

// These are the primitives.
const (
	Limit    Primitive = "limit"
	InFlight Primitive = "inflight"
	Lock     Primitive = "lock"
	Guard    Primitive = "guard"
	Stock    Primitive = "stock"
	Server   Primitive = "server" // a server of the store's Redis
)

// Outcome is how a call ended, as metrics label it.
type Outcome string

// These are the outcomes. Every primitive but a Server has Granted, Failed and Canceled.
const (
	Granted  Outcome = "granted"  // admitted, locked, begun, reserved
	Failed   Outcome = "failed"   // Redis did not answer, or the answer came too late to be of use
	Canceled Outcome = "canceled" // the caller's context ended first

	Denied       Outcome = "denied"        // by a limit, or because there are too few units
	ShadowDenied Outcome = "shadow denied" // a shadow policy would have denied it
	Held         Outcome = "held"          // another holder has the lock, or runs the work

	Replayed   Outcome = "replayed"   // the work was done before
	Mismatched Outcome = "mismatched" // the key was used for something else
	InDoubt    Outcome = "in doubt"   // it is not known whether the work was done
	NoResult   Outcome = "no result"  // the work was done, and there is no result to give

	Completed Outcome = "completed" // the work is done, or the units are sold
	Abandoned Outcome = "abandoned" // a claim ended without the work, or a reservation was cancelled
	Refused   Outcome = "refused"   // the item is unknown, the buyer has it already, or the id cannot be used; also if only the confirmation finds this
	Disagreed Outcome = "disagreed" // the counts in the item's record disagree, so nothing of it is sold

	Lost      Outcome = "lost"      // the lock, claim or reservation ended before its holder was done, or the server does not answer
	Overtaken Outcome = "overtaken" // when the work was done, another caller had taken over: it may have run twice
	Back      Outcome = "back"      // the server answers again
)

// ClassOf returns what Event.Class has for an error: its class, the error of a context,
// or nil if it is neither.
func ClassOf(err error) error {
	failure, is := errors.AsType[*script.Error](err)
	switch {
	case err == nil:
		return nil
	case is:
		return failure.Class
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return context.Canceled
	}
	return nil // Redis answered as it should
}

// observers are the observers of a store.
type observers struct {
	list atomic.Pointer[[]*observer] // nil if there is none
	mu   sync.Mutex                  // held while the list is changed
}

// observer is an entry of the list, so that the list can have the same function twice.
type observer struct{ notify Observer }

// Observe adds an observer of everything on the store. It returns a function that removes
// the observer; further calls of that function do nothing. An event that is on its way at
// that time may still reach the observer. A nil observer adds nothing. A store of [Of]
// stays alive until the observer is removed, and so does its client. Observe is safe for
// concurrent use. It panics if the store was not made by Open or Of.
func (s *Store) Observe(o Observer) (remove func()) {
	misuse.Made(s.made(), errStore)
	if o == nil {
		return func() {}
	}
	own := &observer{o}
	s.observers.change(func(all []*observer) []*observer { return append(all, own) })
	if s.shared {
		watched.Store(own, s)
	}
	return func() {
		watched.Delete(own)
		s.observers.change(func(all []*observer) []*observer {
			return slices.DeleteFunc(all, func(other *observer) bool { return other == own })
		})
	}
}

// watched has the stores of Of that have an observer, by observer. Without it, such a
// store could be collected before anything else uses it, and Of would then make another
// one, which has no observer.
var watched sync.Map

// Notify gives an event to the observers. The library's own packages use it.
func (s *Store) Notify(ctx context.Context, e Event) {
	if s.Observed() {
		s.observers.notify(ctx, e)
	}
}

// Observed reports whether the store has an observer.
func (s *Store) Observed() bool { return s.made() && s.observers.list.Load() != nil }

// change replaces the list, so that calls can read it without a lock.
func (o *observers) change(f func([]*observer) []*observer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []*observer
	if list := o.list.Load(); list != nil {
		all = slices.Clone(*list)
	}
	if all = f(all); len(all) == 0 {
		o.list.Store(nil)
		return
	}
	o.list.Store(&all)
}

func (o *observers) notify(ctx context.Context, e Event) {
	if list := o.list.Load(); list != nil {
		for _, own := range *list {
			own.tell(ctx, e)
		}
	}
}

// tell calls the observer and swallows its panic, because what was granted must not be lost
// with it.
func (o *observer) tell(ctx context.Context, e Event) {
	defer func() {
		if recover() != nil {
			background.Log(nil, slog.LevelError, "neap: an observer panicked", "primitive", e.Primitive)
		}
	}()
	o.notify(ctx, e)
}
