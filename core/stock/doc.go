// Package stock sells a finite number of units, and never one more: a flash
// sale, seats, vouchers.
//
//	phones, err := stock.New(rdb, "sale", nil)
//	if err != nil {
//		return err
//	}
//	if _, err := phones.Open(ctx, "phone", 100, ends); err != nil {
//		return err
//	}
//	r, err := phones.Reserve(ctx, "phone", buyer, order, nil)
//	if err != nil {
//		return err // stock.ErrSoldOut, for one
//	}
//	if err := charge(ctx, order); err != nil {
//		return errors.Join(err, r.Cancel(ctx))
//	}
//	return r.Confirm(ctx)
//
// # The promise, and where it ends
//
// While one Redis primary keeps its data, no more units are confirmed than were put in,
// and each buyer has one reservation of an item. If the record of an item was evicted or
// deleted, or its counts do not add up any more, nothing more is sold: [ErrUnknown],
// [ErrDisagrees]. But a failover to a replica that did not know the last sales sells
// those units again. A second Open of an item that is gone can do so too: open only the
// units that are not sold in your database of orders.
//
// # Leases
//
// A reservation is held for Options.Lease, by the server's clock; then its units return
// to stock. With Confirm the units are sold immediately, in one round trip, until they
// are cancelled. At until, the end of the sale, the record is deleted. Before that, record
// the sales in a database.
//
// # Ids
//
// A reservation has an id, such as the number of an order. A buyer who asks again under
// the same id gets the same reservation, and [ErrYours] under another id. So you may
// repeat a request whose answer was lost.
//
// # Errors
//
// If a buyer gets nothing, the error is one of a few values, such as [ErrSoldOut];
// compare them with errors.Is. If Redis could not answer, the error is a [script.Error]
// of neap's core/script; units that it reserved nonetheless are given back in the
// background.
package stock
