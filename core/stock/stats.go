package stock

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/store"
)

type counters struct {
	reserved, atOnce, again, soldOut, yours, unknown, disagreed, canceled, failed atomic.Uint64
	confirmed, cancellations, lapsed, refused, unconfirmed                        atomic.Uint64
	holding                                                                       atomic.Int64
}

// finished counts the answer of Reserve, and returns its outcome.
func (n *counters) finished(r *Reservation, err error) store.Outcome {
	count, outcome := &n.failed, store.Failed
	switch {
	case err == nil:
		count, outcome = &n.reserved, store.Granted
		if r.again {
			n.again.Add(1)
		}
		if r.Confirmed() {
			n.atOnce.Add(1)
		}
	case errors.Is(err, ErrSoldOut):
		count, outcome = &n.soldOut, store.Denied
	case errors.Is(err, ErrYours):
		count, outcome = &n.yours, store.Refused
	case errors.Is(err, ErrUnknown):
		count, outcome = &n.unknown, store.Refused
	case errors.Is(err, ErrDisagrees):
		count, outcome = &n.disagreed, store.Disagreed
	case errors.Is(err, ErrQuantity), errors.Is(err, ErrCalls):
		outcome = store.Refused
	case ask.IsCanceled(err):
		count, outcome = &n.canceled, store.Canceled
	}
	count.Add(1)
	return outcome
}

// notify tells the observers of the store what became of a reservation.
func (r *Reservation) notify(ctx context.Context, outcome store.Outcome) {
	r.of.store.Notify(ctx, store.Event{Primitive: store.Stock, Name: r.of.name, Outcome: outcome, Change: true, Cost: r.quantity})
}

// isScripts reports whether err says that Redis did not answer.
func isScripts(err error) bool { return err != nil && !ask.IsCallers(err) }

// Stats are counts of what a Stock did in this process.
type Stats struct {
	Reserved  uint64 // reservations
	AtOnce    uint64 // of these, the ones that were sold when they were made
	Again     uint64 // of these, the ones that another call had already
	SoldOut   uint64 // calls that found too few units
	Yours     uint64 // calls whose buyer had another reservation
	Unknown   uint64 // calls that found no such item
	Disagreed uint64 // calls that found a record that disagrees with itself
	Canceled  uint64 // calls whose context ended first
	Failed    uint64 // calls that Redis did not answer in time, and calls that got ErrQuantity or ErrCalls

	Confirmed     uint64 // reservations that Confirm has sold
	Cancellations uint64 // cancellations that Redis has answered, also of what was gone
	Lapsed        uint64 // reservations that ended by themselves, as far as this process knows
	Refused       uint64 // reservations that could not be confirmed because their units were gone
	Unconfirmed   uint64 // confirmations and cancellations that Redis did not confirm at once

	Holding    int    // reservations on a lease at the moment, without those of ReserveOptions.Keep
	Concluding int    // confirmations and cancellations that neap is repeating at the moment
	Concluded  uint64 // confirmations and cancellations that Redis answered late
	Dropped    uint64 // confirmations and cancellations that were given up, because they were refused or failed for a lease, or because neap was repeating 100,000 others
	Undoing    int    // grants that no caller was told of, and that neap is looking for at the moment
	Undone     uint64 // such grants that neap found and gave back
	Lapsing    uint64 // such grants on a lease that are left to lapse, because neap looks for 100,000 others
}

// Stats reports what the Stock does and has done in this process. It sends nothing, is safe for
// concurrent use, and panics on a nil or zero Stock.
func (s *Stock) Stats() Stats {
	misuse.Made(s.made(), errStock)
	n, undo, late := &s.count, s.undo.Stats(), s.late.Stats()
	return Stats{
		Reserved: n.reserved.Load(), AtOnce: n.atOnce.Load(), Again: n.again.Load(), SoldOut: n.soldOut.Load(),
		Yours: n.yours.Load(), Unknown: n.unknown.Load(), Disagreed: n.disagreed.Load(),
		Canceled: n.canceled.Load(), Failed: n.failed.Load(),
		Confirmed: n.confirmed.Load(), Cancellations: n.cancellations.Load(), Lapsed: n.lapsed.Load(),
		Refused: n.refused.Load(), Unconfirmed: n.unconfirmed.Load(),
		Holding:    int(n.holding.Load()),
		Concluding: late.Pending, Concluded: late.Undone, Dropped: late.Overflowed + late.Lapsed,
		Undoing: undo.Pending, Undone: undo.Undone, Lapsing: undo.Overflowed,
	}
}

// gauge is what the store reports about the Stock.
func (s *Stock) gauge() store.Gauge {
	return store.Gauge{
		Primitive: store.Stock, Name: s.name,
		Active: int(s.count.holding.Load()), Background: s.undo.Stats().Pending + s.late.Stats().Pending,
	}
}
