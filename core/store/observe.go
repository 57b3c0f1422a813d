package store

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// Event is one call that asked a primitive, or a change: a claim or a reservation is concluded, a lock is lost, a
// server does not answer any more, or it answers again. It is for metrics and traces. It carries no key, no
// subject and no text of an error.
type Event struct {
	// Primitive says what it is about.
	Primitive Primitive
	// Name is that of the limiter, locker, guard or stock. Of a server it is the address.
	Name string
	// Policy is the one that decided, or would have: of limits alone.
	Policy string
	// Outcome is what became of it.
	Outcome Outcome
	// Change tells a change from a call that asked: a claim that ends in doubt from a Begin that
	// finds one in doubt.
	Change bool
	// Banned says of a denial that the subject is banned (limit.WithBan).
	Banned bool
	// Cost is how many permits or units it is about; 0 if the primitive has none.
	Cost int64
	// Class is one of the four classes of core/script if Redis did not answer as it
	// should, also if the decision was made without Redis. It is the error of the
	// caller's context if that ended first, and nil otherwise.
	Class error
	// Duration is how long the call took. For a server that is lost or back it is the
	// time since its first failure.
	Duration time.Duration
}

// Observer receives an event for each decision of a limiter and each slot that was asked
// for; for each attempt to get a lock, a claim or a reservation, once it has ended, and
// each conclusion of a claim or a reservation that Redis has answered; for each lock, claim or reservation that is
// lost; and for each server that is lost or back. It does not receive what operators ask,
// such as Peek and Inspect, nor renewals, releases and refunds.
//
// It runs on the goroutine of the call. For a server, for a loss, and for what the library does in the
// background, it may run on another. So it must be quick and safe for concurrent use. The
// context is the caller's; for a loss, a server and the background it does not end. A
// panic is swallowed and logged to slog.Default, without its value.
type Observer func(ctx context.Context, e Event)

// Primitive is what an event is about.
type Primitive string

// The primitives.
const (
	Limit    Primitive = "limit"
	InFlight Primitive = "inflight"
	Lock     Primitive = "lock"
	Guard    Primitive = "guard"
	Stock    Primitive = "stock"
	Server   Primitive = "server" // a server of the store's Redis
)

// Outcome is what became of a call, as metrics label it.
type Outcome string

// The outcomes. Each primitive has Granted, Failed and Canceled.
const (
	Granted  Outcome = "granted"  // admitted, locked, begun, reserved
	Failed   Outcome = "failed"   // Redis did not answer, or the answer came too late to be of use
	Canceled Outcome = "canceled" // the caller's context ended first

	Denied       Outcome = "denied"        // by a limit, or since there are too few units
	ShadowDenied Outcome = "shadow denied" // a shadow policy would have denied it
	Held         Outcome = "held"          // another holder has the lock, or runs the work

	Replayed   Outcome = "replayed"   // the work was done before
	Mismatched Outcome = "mismatched" // the key was used for something else
	InDoubt    Outcome = "in doubt"   // whether the work was done is not known
	NoResult   Outcome = "no result"  // the work was done, and there is no result to give

	Completed Outcome = "completed" // the work is done, or the units are sold
	Abandoned Outcome = "abandoned" // a claim ended without the work, or a reservation was cancelled
	Refused   Outcome = "refused"   // the item or the id is unusable, or a confirmation finds it so
	Disagreed Outcome = "disagreed" // the record of the item disagrees with itself, so nothing of it is sold

	Lost      Outcome = "lost"      // the lock, claim or reservation ended before its holder was done, or the server does not answer
	Overtaken Outcome = "overtaken" // another caller had taken over when the work was done: it may have run twice
	Back      Outcome = "back"      // the server answers again
)

// ClassOf is what Event.Class says of an error: its class, the error of a context, or nil if it is neither.
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

// observers are those of a store.
type observers struct {
	list atomic.Pointer[[]*observer] // nil if there is none
	mu   sync.Mutex                  // of those that change the list
}

// observer is an entry of the list, so that the same function may stand there twice.
type observer struct{ notify Observer }

// Observe adds an observer of everything on the store, and returns a function that removes
// it; calling that again does nothing. An event that is on its way meanwhile may still
// reach the observer. A nil observer adds nothing. Observe is safe for concurrent use. It
// panics if the store was not made by Open or Of.
func (s *Store) Observe(o Observer) (remove func()) {
	misuse.Made(s.made(), errStore)
	if o == nil {
		return func() {}
	}
	return s.observers.add(o)
}

// Notify hands an event to the observers; the library's own packages use it.
func (s *Store) Notify(ctx context.Context, e Event) {
	if s.Observed() {
		s.observers.notify(ctx, e)
	}
}

// NotifyCall hands the end of a call to the observers, with its duration and, if Redis
// did not answer, the class of its error; the library's own packages use it.
func (s *Store) NotifyCall(ctx context.Context, e Event, began time.Time, err error) {
	if !s.Observed() {
		return
	}
	e.Duration = time.Since(began)
	if e.Outcome == Failed || e.Outcome == Canceled {
		e.Class = ClassOf(err)
	}
	s.observers.notify(ctx, e)
}

// Observed reports whether the store has an observer.
func (s *Store) Observed() bool { return s.made() && s.observers.list.Load() != nil }

// add and remove replace the list, so that a call reads it without a lock.
func (o *observers) add(notify Observer) (remove func()) {
	own := &observer{notify}
	o.change(func(all []*observer) []*observer { return append(all, own) })
	return func() {
		o.change(func(all []*observer) []*observer {
			return slices.DeleteFunc(all, func(other *observer) bool { return other == own })
		})
	}
}

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
			own.notify.Notify(ctx, e)
		}
	}
}

// Notify calls the observer, and swallows its panic: what was granted must not be lost
// with it.
func (o Observer) Notify(ctx context.Context, e Event) {
	if o == nil {
		return
	}
	defer func() {
		if recover() != nil {
			slog.Default().LogAttrs(context.Background(), slog.LevelError, "neap: an observer panicked", slog.String("primitive", string(e.Primitive)))
		}
	}()
	o(ctx, e)
}
