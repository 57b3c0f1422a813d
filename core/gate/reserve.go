package gate

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/stock"
)

// ReserveOptions are the options of [Reserve]. Their functions must be safe
// for concurrent use; their panics propagate to the request.
type ReserveOptions struct {
	// Skip lets a request pass without a reservation.
	Skip func(Request) bool
	// ID is what a repetition is known by, such as an order's number: a request
	// under the id that its buyer has the item by runs, too, and has the same
	// reservation, of which stock.Reservation.Again says so. Eight requests can
	// have it at a time; a ninth is refused until one of them has failed. Nil is
	// an id of its own for each request: the buyer who has the item is refused.
	ID Key
	// Quantity is how many units a request wants; nil is 1 each. Fewer than 1, or
	// more than stock.MaxUnits, are refused with a 400. An error is answered like
	// that of a Key.
	Quantity func(Request) (int64, error)
	// Confirm has the units be sold before the handler runs, and cancelled if it
	// fails: one round trip instead of two. Nothing can lapse then; but when the
	// process dies, the units stay sold.
	Confirm bool
	// Keep leaves the units held, for a payment, when the handler succeeds: see
	// [Reserve]. They come back a lease after the request was admitted, so give the
	// stock an Options.Lease that is longer than a payment may take. It excludes Confirm.
	Keep bool

	// Render makes the answer to a request that may not run, as that of
	// [RateLimitOptions] does.
	Render func(Denial) Reply
	// OnError hears of what is answered with a 500 or 503, as that of
	// [RateLimitOptions] does. It also hears, when the handler has run, of a
	// success whose units are gone (stock.ErrLapsed, stock.ErrUnknown), so that
	// it has to be undone, and of a Confirm or Cancel that Redis did not confirm
	// and that goes on in the background. The Request then has no more than its
	// context, in which stock.FromContext finds the reservation, and its method,
	// host, path, query, route and peer.
	OnError func(Request, error)
}

// Reserve is a gate that has a request's buyer have units of an item of s while
// its handler runs, and keeps them for the buyer when that succeeds. It answers
//
//   - 409 when there are not as many left, and, with other problem types, when
//     the buyer has the item already, or eight requests have it under one id,
//   - 404 when there is no such item,
//   - 400 to 499 when the request cannot be keyed; 422 when its id stands for
//     another quantity,
//   - 503 when Redis could not answer, or when the request's context ended: the
//     handler does not run,
//   - 500 when a key is wrongly wired or fails, or the item's record disagrees
//     with itself,
//
// with problem types that begin with [TypeStock]. The item is called what was
// given to Open: of a key of this package, such as [ByParam], it is the value
// alone. The buyer is called what the key returns, with its kind.
//
// The handler finds the reservation with stock.FromContext. It is renewed while
// the handler runs; then an answer below 400 confirms it, and anything else
// cancels it: an answer of 400 and above, a panic, a returned error, a refusal of
// a gate further in ([Reply.Refused]), and an empty 200 when the request's
// context has ended: a handler that gave up because its client went away. Both are done before the response has ended, unless the handler flushed
// all of it, and whether or not the client still listens. A handler that confirms
// or cancels by itself has decided, whatever it answers then. Mount the gate inside
// of what compresses answers: that writes a footer for a handler that gives up, which
// looks like a body.
//
// When the answer is confirmed it has begun, and cannot be taken back. Should the
// lease have ended by then, since Redis was away or the process slept, Confirm
// takes the units anew while there are any; where there are none, OnError hears
// stock.ErrLapsed of a client who was told of a success. Where that must not be,
// use Confirm of the options, or have the handler confirm before it answers, and
// answer with what came of it. The handler's context is the request's, and does
// not end with the lease.
//
// With Keep an answer below 400 leaves the units held for a payment, and all else is as
// above. The handler stores the reservation's Item, Buyer, ID and Quantity with the
// order. The payment's callback (package callback), in any process, passes them to
// stock.Stock.Resume, and calls Confirm. The units are held for the stock's
// Options.Lease from when the request was admitted; then they come back by
// themselves. The lease is not renewed, and the gate sends nothing when the handler
// succeeds: what becomes of the process, the client and Redis then changes nothing. A
// process that dies before leaves the units to the lease as well.
//
//   - Confirm of a payment that comes later takes the units anew while there are any.
//     Otherwise it returns stock.ErrLapsed: refund the payment. If the item's time is over
//     too, it returns stock.ErrUnknown, so open the item for longer than the last lease.
//   - A second Confirm changes nothing. A Confirm after a Cancel is like one that comes
//     later.
//   - An order that will not be paid need not be cancelled: the lease ends. Cancel of what
//     Resume returns gives the units back at once, but also those that are sold: ask
//     first whether the order is paid.
//   - A buyer who comes again under the same ID has the same reservation, for a lease from
//     then on. Under another id, and without an ID, the buyer is refused until the units
//     are back.
//
// It costs a round trip before the handler and one after it, another for each
// third of the lease that the handler takes, and those of stock.Stock.Reserve. With Keep
// it costs one, and another when the handler fails.
//
// It panics at wiring on a nil or zero s, on a nil item or buyer, and on Keep with
// Confirm; nil options are the defaults, and options are copied.
func Reserve(s *stock.Stock, item, buyer Key, opts *ReserveOptions) Gate {
	if s == nil {
		panic("gate.Reserve: the stock is nil; make one with stock.New")
	}
	s.Name() // panics on one that nothing made
	if item == nil {
		panic("gate.Reserve: the item is nil; say what is sold, such as ByParam")
	}
	if buyer == nil {
		panic("gate.Reserve: the buyer is nil; say who buys, such as ByValue")
	}
	g := &reserve{stock: s, item: item, buyer: buyer}
	if opts != nil {
		g.opts = *opts
	}
	if g.opts.Keep && g.opts.Confirm {
		panic("gate.Reserve: Keep and Confirm: a unit is held for a payment, or sold before the handler runs; use one of them")
	}
	g.answers = answers{render: g.opts.Render, onError: g.opts.OnError}
	return g
}

type reserve struct {
	stock       *stock.Stock
	item, buyer Key
	opts        ReserveOptions
	answers     answers
}

func (g *reserve) Enter(r Request) Pass {
	if g.opts.Skip != nil && g.opts.Skip(r) {
		return Pass{}
	}
	o, err := g.wanted(r)
	if err != nil {
		return g.answers.refuse(r, err)
	}
	own, err := g.stock.Reserve(r.Context(), o.item, o.buyer, o.id,
		&stock.ReserveOptions{Quantity: o.quantity, Confirm: g.opts.Confirm, Keep: g.opts.Keep, Renew: true})
	if err != nil {
		return g.refused(r, err)
	}
	ctx, ending := watch(stock.NewContext(r.Context(), own))
	return Pass{Context: ctx, Leave: g.leaving(ending, r, own)}
}

// wanted is what a request asks of the stock.
type wanted struct {
	item, buyer, id string
	quantity        int64
}

func (g *reserve) wanted(r Request) (o wanted, err error) {
	if o.item, err = subject(r, g.item); err != nil {
		return o, err
	}
	if o.item = untagged(o.item); o.item == "" {
		return o, fmt.Errorf("%w: the item of gate.Reserve is empty", ErrWiring)
	}
	if o.buyer, err = subject(r, g.buyer); err != nil {
		return o, err
	}
	o.quantity = 1
	if g.opts.Quantity != nil {
		if o.quantity, err = g.opts.Quantity(r); err != nil {
			return o, err
		}
		if o.quantity < 1 || o.quantity > stock.MaxUnits {
			return o, Refuse(400, "The quantity of the request is not one that can be reserved")
		}
	}
	if g.opts.ID == nil {
		o.id = token.New()
		return o, nil
	}
	o.id, err = subject(r, g.opts.ID)
	return o, err
}

// retryCalls is when to come back to an id that eight requests have: there is room
// when one of them has failed, and nobody knows when.
const retryCalls = time.Second

func (g *reserve) refused(r Request, err error) Pass {
	d := Denial{Status: 409}
	switch {
	case errors.Is(err, stock.ErrSoldOut):
		d.Type, d.Title = typeSoldOut, "There are not as many left"
	case errors.Is(err, stock.ErrYours):
		d.Type, d.Title = typeYours, "The buyer has the item already"
	case errors.Is(err, stock.ErrUnknown):
		d.Status, d.Type, d.Title = 404, typeUnknownItem, "There is no such item"
	case errors.Is(err, stock.ErrQuantity):
		d.Status, d.Type, d.Title = 422, typeQuantity, "The id stands for another quantity"
	case errors.Is(err, stock.ErrCalls):
		d.Type, d.Title, d.RetryAfter = typeCalls, "Eight requests with this id have the item already", retryCalls
	case errors.Is(err, stock.ErrDisagrees):
		return g.answers.refuse(r, err)
	default:
		return g.answers.away(r, err, typeNotReserved, "Nothing was reserved") // what Redis may have granted is given back
	}
	return g.answers.deny(r, d)
}

// leaving settles for what the answer says, whatever became of the client.
func (g *reserve) leaving(ending *ending, r Request, own *stock.Reservation) func(*Reply) {
	client, asked := r.Context(), Request(nil)
	if g.answers.onError != nil {
		kept := snapshotOf(r)
		kept.ctx = ending.ctx
		asked = kept
	}
	return func(reply *Reply) {
		gaveUp := ending.gaveUp(reply)
		if own.Concluded() {
			return
		}
		conclude := own.Confirm
		if reply == nil || reply.Status >= 400 || reply.Refused || gaveUp {
			conclude = own.Cancel
		} else if g.opts.Keep {
			return
		}
		if err := conclude(client); err != nil {
			g.answers.tell(asked, err)
		}
	}
}
