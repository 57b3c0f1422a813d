package stock

import (
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/script"
)

// Why there is nothing for a buyer, and what became of a reservation. A call that
// Redis could not answer fails with a [*script.Error] instead.
var (
	// ErrSoldOut: there are not as many units left.
	ErrSoldOut = errors.New("stock: sold out")
	// ErrYours: the buyer has the item already, under another id.
	ErrYours = errors.New("stock: the buyer has it already")
	// ErrUnknown: there is no such item. It was never opened, its sale is over, or
	// its record is gone.
	ErrUnknown = errors.New("stock: no such item")
	// ErrDisagrees: the record was changed by something else, and its counts do
	// not add up. The item is not sold until you Forget it and Open it again.
	ErrDisagrees = errors.New("stock: the record disagrees with itself")
	// ErrQuantity: the id stands for another number of units.
	ErrQuantity = errors.New("stock: the id has another quantity")
	// ErrCalls: eight calls have the reservation already, under the same id. Redis
	// does not tell more than eight apart, so a ninth could not give its part back.
	// When one of the eight has cancelled, another call can have it.
	ErrCalls = errors.New("stock: eight calls have the reservation already: cancel one, or Resume it")
	// ErrLapsed: the reservation is over. If Confirm returns it, there are no units for
	// it any more: undo what was done for the buyer.
	ErrLapsed = errors.New("stock: the reservation has lapsed")
	// ErrCancelled: the reservation was cancelled by its holder.
	ErrCancelled = errors.New("stock: the reservation is cancelled")
)

// What a call was given that it cannot use.
var (
	// ErrItem: the item is empty.
	ErrItem = errors.New("stock: the item is empty: say what is sold")
	// ErrBuyer: the buyer is empty.
	ErrBuyer = errors.New("stock: the buyer is empty: say who buys")
	// ErrID: the id is empty.
	ErrID = errors.New("stock: the id is empty: say what asking again is known by, such as an order's number")
	// ErrUnits: the number of units is out of range.
	ErrUnits = fmt.Errorf("stock: units out of range: use 1 to %d, in all", MaxUnits)
	// ErrUntil: the end of the item is out of range.
	ErrUntil = errors.New("stock: until is out of range: use a time in the future, no further away than 366 days")
)

// What the program has to mend.
var (
	errStock       = errors.New("stock: a nil or zero Stock: make one with New, and check its error first")
	errReservation = errors.New("stock: a nil or zero Reservation: Reserve or Resume returned an error, check it first")
)

var errRing = fmt.Errorf("%w: rdb is a Ring, whose clients can disagree about which server has an item, and then it is sold twice: "+
	"use a Client, a failover Client or a ClusterClient", script.ErrClient)
