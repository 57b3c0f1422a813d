package stock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
)

// Reservation is what a buyer has of an item. It is safe for concurrent use. The zero
// Reservation is not usable.
type Reservation struct {
	of              *Stock
	item, buyer, id string
	quantity        int64
	question        question
	again           bool
	resumed         bool
	leased          bool
	lease           lease.Lease

	asking chan struct{} // has an element while Redis is asked: one call at a time
	doubt  ask.Doubt     // calls that may grant the units yet; guarded by asking
	lasts  atomic.Bool   // the units are sold, or such a call may sell them: no lease ends that

	unrenewed atomic.Bool // a Confirm has failed, and no call follows it

	mu    sync.Mutex
	state state
	wants state // the last request: sold or cancelled
}

type state uint8

const (
	held state = iota
	sold
	cancelled
	lapsed
)

// Item returns the item that was given to Reserve.
func (r *Reservation) Item() string {
	misuse.Made(r.made(), errReservation)
	return r.item
}

// Buyer returns the buyer that was given to Reserve.
func (r *Reservation) Buyer() string {
	misuse.Made(r.made(), errReservation)
	return r.buyer
}

// ID returns the id that was given to Reserve.
func (r *Reservation) ID() string {
	misuse.Made(r.made(), errReservation)
	return r.id
}

// Quantity returns the number of units.
func (r *Reservation) Quantity() int64 {
	misuse.Made(r.made(), errReservation)
	return r.quantity
}

// Again reports whether an earlier call made the same reservation. One Confirm confirms
// it for all calls. The units return to stock when every call has cancelled.
func (r *Reservation) Again() bool {
	misuse.Made(r.made(), errReservation)
	return r.again
}

// By reports whether s has given the reservation out.
func (r *Reservation) By(s *Stock) bool {
	misuse.Made(r.made(), errReservation)
	return r.of == s
}

func (r *Reservation) made() bool { return r != nil && r.of != nil }

// Confirmed reports whether the units are sold, as far as this process knows.
func (r *Reservation) Confirmed() bool {
	misuse.Made(r.made(), errReservation)
	return r.is() == sold
}

// Concluded reports whether Confirm was called and has succeeded, or Cancel was called. A
// Cancel is final, even if Redis has not confirmed it. ReserveOptions.Confirm sells
// without concluding.
func (r *Reservation) Concluded() bool {
	misuse.Made(r.made(), errReservation)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wants == cancelled || r.wants == sold && r.state == sold
}

// is returns the state for the caller: a Cancel is final before Redis has confirmed it.
func (r *Reservation) is() state {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wants == cancelled {
		return cancelled
	}
	return r.state
}

// becomes sets the state.
func (r *Reservation) becomes(s state) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state = s; s == sold {
		r.lasts.Store(true)
	}
}

// Err returns nil while the reservation lasts; a confirmed one lasts for good. Otherwise
// it returns [ErrLapsed], [ErrCancelled], or the loss that Renew has found. A lapsed
// reservation can still be confirmed while there are units.
//
// Err compares clocks and sends nothing. It does not know the lease of a reservation that
// Resume made, or of one with ReserveOptions.Keep.
func (r *Reservation) Err() error {
	if !r.made() {
		return errReservation
	}
	switch r.is() {
	case sold:
		return nil
	case cancelled:
		return ErrCancelled
	case lapsed:
		return ErrLapsed
	case held:
	}
	if !r.leased {
		return nil
	}
	if err := r.lease.Err(); !errors.Is(err, errSold) {
		return err
	}
	return nil
}

// Renew prolongs the lease to Options.Lease from now; sold units need no lease. It waits
// for a Confirm or Cancel in progress, and costs one round trip.
//
// Renew returns
//
//   - [ErrLapsed] if the lease is over, or if this process or another gave the units
//     back;
//   - [ErrCancelled], [ErrUnknown] or [ErrDisagrees];
//   - ctx.Err() if the caller's context ended;
//   - a [*script.Error] if Redis could not answer. Err is still right then.
func (r *Reservation) Renew(ctx context.Context) error {
	misuse.Context(ctx)
	if err := r.Err(); err != nil || r.Confirmed() {
		return err
	}
	if r.leased {
		if err := r.lease.Extend(ctx, r.of.opts.Lease); !errors.Is(err, errSold) {
			return err
		}
		return nil
	}
	_, _, lost, err := r.renew(ctx, r.of.opts.Lease)
	if errors.Is(lost, errSold) {
		return nil
	}
	return either(err, lost)
}

// claim names the call whose part in the reservation is renewed and cancelled. "" means
// the parts of all calls.
func (r *Reservation) claim() any {
	if r.resumed {
		return ""
	}
	return r.question.token
}

// ended ends the lease although nothing is lost, and reports whether it was over before.
func (r *Reservation) ended(reason error) (over bool) {
	if !r.leased {
		return false
	}
	if r.lease.End(reason) != nil {
		return true
	}
	r.of.count.holding.Add(-1)
	return false
}

type contextKey struct{}

// NewContext returns a child of ctx that carries the reservation.
func NewContext(ctx context.Context, r *Reservation) context.Context {
	misuse.Context(ctx)
	return context.WithValue(ctx, contextKey{}, r)
}

// FromContext returns the reservation that NewContext or a gate put into ctx, and false
// if there is none.
func FromContext(ctx context.Context) (*Reservation, bool) {
	misuse.Context(ctx)
	r, ok := ctx.Value(contextKey{}).(*Reservation)
	return r, ok && r != nil
}

// doubts notes calls that Redis may have executed although their answer was lost.
func (r *Reservation) doubts(in ask.Doubt, forGood bool) {
	r.doubt.Add(in)
	if forGood && in.Calls > 0 {
		r.lasts.Store(true)
	}
}

// takeBack gives back, in the background, what calls without an answer may have granted.
func (r *Reservation) takeBack() {
	if r.doubt.Calls == 0 {
		return
	}
	q, start := r.question, r.of.undo.Start
	if r.lasts.Load() {
		start = r.of.undo.Keep
	}
	r.doubt.TakeBack(start, r.of.opts.Lease, false, func() (found bool, err error) {
		n, _, _, err := r.of.number(context.Background(), cancelScript, q.key, q.buyer, q.id, q.token)
		return n > 0, err
	})
	r.doubt = ask.Doubt{}
}
