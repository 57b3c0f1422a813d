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
// While one Redis primary keeps its data, no more units are confirmed than were
// put in, and each buyer has one reservation of an item. An item whose record is
// gone, evicted or deleted, or whose counts do not add up any more, is sold no
// further: [ErrUnknown], [ErrDisagrees]. But a failover to a replica that did not
// know of the last sales sells those units again, and so does a second Open of an
// item that is gone: open it with what the database of orders leaves.
//
// # Leases
//
// A reservation is held for Options.Lease, by the server's clock; then its units
// are anybody's. What is reserved with Confirm is sold at once, in one round
// trip, until it is cancelled. When the item's time has come, until, its record
// and all that it says goes: who has bought what has to be in a database by then.
//
// # Ids
//
// A reservation has an id, such as an order's number. To ask again under the same
// id is to have the same reservation, and under another id [ErrYours]. So a
// request whose answer was lost may be sent again.
//
// # Errors
//
// Why there is nothing for a buyer is one of a few values, such as [ErrSoldOut],
// to be told apart with errors.Is. Where Redis could not answer it is a
// [script.Error] of neap's core/script; what it may have granted nonetheless is
// given back in the background.
package stock
