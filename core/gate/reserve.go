package gate

import (
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/stock"
)

// ReserveOptions are the options of [Reserve]. Their functions must be safe for
// concurrent use; their panics propagate to the request.
type ReserveOptions struct {
	// Skip lets a request pass without a reservation.
	Skip func(Request) bool
	// ID identifies repetitions, for example by an order's number. A request under the ID
	// by which its buyer already has the item runs, too, and gets the same reservation,
	// whose stock.Reservation.Again reports true. Up to eight requests can have one
	// reservation at a time. A ninth is refused until one of them has failed. With nil
	// each request has an ID of its own, so a buyer that already has the item is refused.
	ID Key
	// Quantity returns how many units a request wants. With nil each request wants 1.
	// Fewer than 1, or more than stock.MaxUnits, are refused with a 400. An error is
	// answered like that of a Key.
	Quantity func(Request) (int64, error)
	// Confirm sells the units before the handler runs, and cancels the sale if the
	// handler fails. It costs one round trip instead of two. Nothing can lapse, but if
	// the process dies, the units stay sold.
	Confirm bool
	// Keep leaves the units held for a payment if the handler succeeds: see [Reserve].
	// They come back one lease after the request was admitted. So give the stock an
	// Options.Lease that is longer than a payment may take. Keep excludes Confirm.
	Keep bool

	// Render makes the answer to a request that may not run, as Render of
	// [RateLimitOptions] does.
	Render func(Denial) Reply
	// OnError is told of each request that is answered with a 500 or 503, as OnError of
	// [RateLimitOptions] is. After the handler has run it is also told of
	//
	//   - a success whose units are gone (stock.ErrLapsed, stock.ErrUnknown), so that you
	//     have to undo it,
	//   - a Confirm or Cancel that Redis did not confirm (a *script.Error). It goes on in
	//     the background. If it fails there, OnError is told once more, of an error as
	//     above, of stock.ErrDisagrees or stock.ErrQuantity, or of stock.ErrDropped if it
	//     was given up.
	//
	// The Request then has only its context, in which stock.FromContext finds the
	// reservation, and its method, host, path, query, route and peer.
	OnError func(Request, error)
}

// Reserve returns a gate that reserves units of an item of s for a buyer while the
// handler runs. If the handler succeeds, the buyer keeps the units; otherwise they return
// to stock. The gate answers
//
//   - 409 if not enough units are left; with other problem types, if the buyer has the
//     item already, or if eight requests have it under one ID,
//   - 404 if there is no such item,
//   - 400 to 499 if the request has no usable key; 422 if its ID stands for another
//     quantity,
//   - 503 if Redis could not answer, or if the request's context ended: the handler does
//     not run,
//   - 500 if a key is wired wrongly or fails, or if the item's record disagrees with
//     itself,
//
// with problem types that begin with [TypeStock].
//
// The name of the item is what was given to Open. If the key is one of this package, such
// as [ByParam], the name is the value alone, without its kind; only [ByValue] keeps its
// name in front. The name of the buyer is what its key returns, with the kind.
//
// # What the handler decides
//
// The handler finds the reservation with stock.FromContext. neap renews the reservation
// while the handler runs. Then an answer below 400 confirms it, and anything else cancels
// it:
//
//   - an answer of 400 and above, a panic, or a returned error,
//   - a refusal by a gate further in ([Reply.Refused]),
//   - an empty 200 if the request's context has ended, or that of a gate further in: the
//     handler gave up because its client went away or a lock was lost or released.
//
// This is done before the response has ended, unless the handler flushed all of it, and
// whether or not the client still listens. A handler that confirms or cancels by itself
// has decided, whatever it answers then. Mount the gate inside of middleware that
// compresses answers: for a handler that gives up such middleware writes a footer, which
// looks like a body.
//
// # Where the promise ends
//
// When the gate confirms an answer, the answer has begun and cannot be taken back. The
// lease may have ended by then, because Redis was down or the process was paused. Confirm
// then takes the units anew if there are any. If there are none, the client was told of a
// success without units, and OnError is told stock.ErrLapsed. If that must not happen,
// set Confirm of the options, or confirm in the handler before it answers, and answer
// according to the result. The handler's context is the request's, and does not end with
// the lease.
//
// # Keep
//
// With Keep an answer below 400 leaves the units held for a payment; all else is as
// above. The handler stores the reservation's Item, Buyer, ID and Quantity with the
// order. The payment's callback (package callback), in any process, passes them to
// stock.Stock.Resume and calls Confirm.
//
// The units are held for the stock's Options.Lease, counted from when the request was
// admitted. Then they come back by themselves. The lease is not renewed, and the gate
// sends nothing when the handler succeeds. So it does not matter what happens to the
// process, the client or Redis after that. If the process dies before, the units come
// back with the lease as well.
//
//   - Confirm of a payment that comes later than that takes the units anew if there are
//     any. Otherwise it returns stock.ErrLapsed: refund the payment. If the item's time
//     is over too, it returns stock.ErrUnknown. So open the item for longer than the last
//     lease.
//   - A second Confirm changes nothing. A Confirm after a Cancel acts like one that comes
//     later than the lease.
//   - You need not cancel an order that will not be paid: the lease ends. Cancel of what
//     Resume returns gives the units back at once. It also gives back units that are
//     sold, so ask first whether the order is paid.
//   - A buyer that comes again under the same ID has the same reservation, for a whole
//     lease from then on. Under another ID, and without an ID, the buyer is refused until
//     the units are back.
//
// # Cost
//
// Reserve costs a round trip before the handler and one after it, another for each third
// of the lease that the handler takes, and those of stock.Stock.Reserve. With Keep it
// costs one, and another if the handler fails.
//
// # Panics
//
// Reserve panics at wiring on a nil or zero s, on a nil item or buyer, and on Keep with
// Confirm. Nil options are the defaults; options are copied.
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
		panic("gate.Reserve: ReserveOptions has Keep and Confirm: leave out one of them; Keep holds units for a payment, Confirm sells them before the handler runs")
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

// wanted is what a request asks the stock for.
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

func (g *reserve) refused(r Request, err error) Pass {
	var kind Kind
	switch {
	case errors.Is(err, stock.ErrSoldOut):
		kind = KindSoldOut
	case errors.Is(err, stock.ErrYours):
		kind = KindYours
	case errors.Is(err, stock.ErrUnknown):
		kind = KindUnknownItem
	case errors.Is(err, stock.ErrQuantity):
		kind = KindQuantity
	case errors.Is(err, stock.ErrCalls):
		kind = KindCalls
	case errors.Is(err, stock.ErrDisagrees):
		return g.answers.refuse(r, err)
	default:
		return g.answers.unavailable(r, err, KindNotReserved) // if Redis granted it nevertheless, the stock gives it back
	}
	return g.answers.deny(r, Denial{Kind: kind})
}

// leaving returns a Leave that confirms or cancels according to the answer, whatever
// became of the client.
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
		g.answers.conclude(client, asked, conclude)
	}
}
