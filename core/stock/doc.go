// Package stock sells a finite number of units and never one more, such as those of a
// flash sale, seats or vouchers.
//
//	phones, err := stock.New(rdb, "sale", nil)
//	if err != nil {
//		return err
//	}
//
// A deploy opens an item, once:
//
//	_, err := phones.Open(ctx, "phone", 100, ends)
//
// Each request sells a unit. charge and refund act once for an order, and charge fails for
// an order that was refunded:
//
//	r, err := phones.Reserve(ctx, "phone", buyer, order, &stock.ReserveOptions{Renew: true})
//	if err != nil {
//		return err // such as stock.ErrSoldOut
//	}
//	if r.Confirmed() { // by a request whose answer was lost
//		return nil
//	}
//	if err := charge(ctx, order); err != nil {
//		return errors.Join(err, r.Cancel(ctx))
//	}
//	err = r.Confirm(ctx)
//	if errors.Is(err, stock.ErrLapsed) { // the lease was lost meanwhile, and all are sold
//		return errors.Join(err, refund(ctx, order))
//	}
//	return err
//
// # Leases
//
// A reservation is held for Options.Lease, by the server's clock. Then its units return
// to stock. [Reservation.Confirm] sells the units, until they are cancelled. With
// ReserveOptions.Confirm the units are sold immediately, in one round trip.
//
// # The end of a sale
//
// [Stock.Open] is told when the sale ends. At that time the record is deleted. Record the
// sales in a database before then.
//
// # Ids
//
// A reservation has an id, such as the number of an order. A buyer who asks again under
// the same id gets the same reservation. Under another id the buyer gets [ErrYours]. So
// you may repeat a request whose answer was lost.
//
// # Errors
//
// If a buyer gets nothing, the error is one of a few values, such as [ErrSoldOut].
// Compare them with errors.Is. If Redis could not answer, the error is a [script.Error]
// of neap's core/script. Redis may have reserved units all the same; they are given back
// in the background.
//
// # Where the promise ends
//
// While one Redis primary keeps its data, no more units are confirmed than were put in,
// and each buyer has one reservation of an item. If the record of an item was evicted or
// deleted, or its counts no longer add up, nothing more is sold: the error is
// [ErrUnknown] or [ErrDisagrees].
//
// But a failover to a replica that did not know the last sales sells those units again. A
// second Open of an item that is gone can do so too: open only the units that are not
// sold in your database of orders.
//
// [What a stock promises] has every case, and what to do about it.
//
// [What a stock promises]: https://github.com/neap-go/neap/blob/main/docs/stock.md
package stock
