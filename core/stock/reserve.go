package stock

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// Reserve gives a buyer units of an item: until a lease ends or, with
// ReserveOptions.Confirm, for good. Nil opts mean one unit on a lease.
//
// The id makes the call repeatable. Under the same id the buyer has the same reservation:
// it lasts for a lease from now, or it is sold, as before. [Reservation.Again] reports
// that. Up to eight calls can have a reservation at a time. A ninth gets [ErrCalls] until
// one of them has cancelled. Under another id the buyer gets [ErrYours] while the first
// reservation lasts. Any item, buyer and id but the empty one will do. Redis stores a
// long or unusual one as its hash.
//
// Reserve returns
//
//   - [ErrSoldOut], [ErrYours], [ErrCalls] or [ErrUnknown];
//   - [ErrQuantity] if the id has another quantity, and [ErrDisagrees] if the record
//     disagrees with itself;
//   - [ErrItem], [ErrBuyer], [ErrID] or [ErrUnits];
//   - ctx.Err() if the caller's context ended;
//   - [ErrLapsed] if the lease was over when the answer came;
//   - a [*script.Error] if Redis could not answer within the budget.
//     ReserveOptions.Confirm also gets one while 100,000 reservations of this process are
//     in doubt.
//
// Redis may reserve units although its answer is lost. These units are given back in the
// background.
//
// Reserve costs one round trip. If too few units are left and leases have ended, it costs
// two more. It costs another for each 256 of these leases, and of later leases that were
// confirmed or cancelled. If the budget ends before that is done, Reserve returns an
// error.
func (s *Stock) Reserve(ctx context.Context, item, buyer, id string, opts *ReserveOptions) (*Reservation, error) {
	r, err := s.reservation(item, buyer, id, opts)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = s.reserve(ctx, r, opts)
	outcome := s.count.finished(r, err)
	told := false
	defer func() { // an observer may end the goroutine, and then no caller gets the grant
		if !told && err == nil {
			background.Go(func() { _ = r.Cancel(context.Background()) })
		}
	}()
	ask.Notify(ctx, s.store, store.Event{Primitive: store.Stock, Name: s.name, Outcome: outcome, Cost: r.quantity}, began, err)
	told = true
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Resume returns a reservation that was made elsewhere, to confirm or cancel it. For
// example, another process may serve the callback of a payment. Opts give the quantity,
// which must be that of the reservation, and nothing else. Resume sends nothing, so only
// Confirm or Cancel finds out whether the reservation exists.
//
// Cancel of a resumed reservation gives back the units of every call under the id. Resume
// returns [ErrItem], [ErrBuyer], [ErrID] or [ErrUnits].
func (s *Stock) Resume(item, buyer, id string, opts *ReserveOptions) (*Reservation, error) {
	r, err := s.reservation(item, buyer, id, opts)
	if err != nil {
		return nil, err
	}
	r.resumed = true
	return r, nil
}

func (s *Stock) reservation(item, buyer, id string, opts *ReserveOptions) (*Reservation, error) {
	r := &Reservation{of: s, item: item, buyer: buyer, id: id, quantity: 1, asking: make(chan struct{}, 1)}
	if opts != nil && opts.Quantity != 0 {
		r.quantity = opts.Quantity
	}
	key, err := s.key(item)
	switch {
	case err != nil:
		return nil, err
	case buyer == "":
		return nil, ErrBuyer
	case id == "":
		return nil, ErrID
	case r.quantity < 1 || r.quantity > MaxUnits:
		return nil, ErrUnits
	}
	r.question = question{
		key: key, buyer: s.space.Subject(buyer), id: s.space.Subject(id),
		quantity: single, token: token.New(),
	}
	if r.quantity != 1 {
		r.question.quantity = integer(r.quantity)
	}
	return r, nil
}

// single is the usual quantity, converted to any once.
var single any = "1"

// question is a reservation as the scripts know it.
type question struct {
	key                        string
	buyer, id, quantity, token any // strings, converted to any once
}

// doubted is the largest number of reservations without an answer that neap looks for at a
// time. It is also the largest number of conclusions that it repeats at a time.
const doubted = 100_000

var errFull = errors.New("too many reservations are in doubt: ReserveOptions.Confirm sells nothing until Redis has answered about some of them")

// These are the leases of what is sold: by Reserve, and by Confirm, which is refused to
// no call.
const (
	forGood   = "0"
	confirmed = ""
)

func (s *Stock) reserve(ctx context.Context, r *Reservation, opts *ReserveOptions) error {
	term, terms := s.lease, &s.plain
	if opts != nil && opts.Confirm {
		if s.undo.Full() {
			return &script.Error{Script: reserveScript.Name(), Class: script.ErrNotExecuted, Err: errFull}
		}
		term = forGood
	} else if opts != nil && opts.Renew {
		terms = &s.kept
	}
	exited := true // a hook of the client may end the goroutine
	defer func() {
		if exited {
			r.doubts(ask.Doubt{Last: time.Now(), Calls: 1}, term == forGood)
			r.takeBack()
		}
	}()
	n, asked, in, err := s.take(ctx, &r.question, term)
	exited = false
	r.doubts(in, term == forGood)
	if err != nil {
		r.takeBack()
		return err
	}
	r.again = n > 2
	if n%2 == 0 {
		r.becomes(sold)
		return nil
	}
	r.leased = true
	if !r.lease.Begin((*holding)(r), terms, asked, s.opts.Lease) {
		_ = r.Cancel(ctx)
		return ErrLapsed
	}
	if opts != nil && opts.Keep {
		r.ended(errKept)
		r.leased = false // from here on it is like one that Resume made
	}
	return nil
}

// take asks for the units until it learns whether there are any. If leases have lapsed,
// it first makes their units return. n is 1 to 4 if it got the units.
func (s *Stock) take(ctx context.Context, q *question, term any) (n int64, asked time.Time, in ask.Doubt, err error) {
	asks := reserveScript
	if term == confirmed {
		asks = confirmScript
	}
	var lapsed sweeping
	for {
		n, asked, more, err := s.number(ctx, asks, q.key, q.buyer, q.id, q.quantity, term, q.token)
		in.Add(more)
		switch {
		case err != nil:
			return 0, asked, in, in.Worst(err)
		case n == due:
			if err := lapsed.sweep(ctx, s, q.key); err != nil {
				return 0, asked, in, in.Worst(err)
			}
			continue
		case n == none:
			return 0, asked, in, ErrSoldOut
		case n < 0:
			return 0, asked, in, fault(n)
		}
		return n, asked, in, nil
	}
}
