package stock

import (
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/script"
)

// These errors say why a buyer gets nothing, or what became of a reservation. If Redis
// could not answer, the error is a [*script.Error] instead.
var (
	// ErrSoldOut says that fewer units are left than were asked for.
	ErrSoldOut = errors.New("stock: sold out")
	// ErrYours says that the buyer has the item already, under another id.
	ErrYours = errors.New("stock: the buyer has it already")
	// ErrUnknown says that there is no such item. It was never opened, its sale is over,
	// or its record is gone.
	ErrUnknown = errors.New("stock: no such item")
	// ErrDisagrees says that something else changed the record, and its counts do not add
	// up. The item is not sold until you Forget it and Open it again.
	ErrDisagrees = errors.New("stock: the record disagrees with itself")
	// ErrQuantity says that the id stands for another number of units.
	ErrQuantity = errors.New("stock: the id has another quantity")
	// ErrCalls says that eight calls have the reservation already, under the same id.
	// Redis does not tell more than eight apart, so a ninth could not give its part back.
	// When one of the eight has cancelled, another call can have it.
	ErrCalls = errors.New("stock: eight calls have the reservation already: cancel one, or Resume it")
	// ErrLapsed says that the reservation is over. If Confirm returns it, there are no
	// units left for it: undo what was done for the buyer.
	ErrLapsed = errors.New("stock: the reservation has lapsed")
	// ErrCancelled says that the holder cancelled the reservation.
	ErrCancelled = errors.New("stock: the reservation is cancelled")
	// ErrDropped says that a Confirm or Cancel was given up in the background, as
	// Stats.Dropped counts. OnError of gate.Reserve is told of it.
	ErrDropped = errors.New("stock: given up")
)

// These errors report an argument that cannot be used.
var (
	// ErrItem says that the item is empty.
	ErrItem = errors.New("stock: the item is empty: say what is sold")
	// ErrBuyer says that the buyer is empty.
	ErrBuyer = errors.New("stock: the buyer is empty: say who buys")
	// ErrID says that the id is empty.
	ErrID = errors.New("stock: the id is empty: use what stays the same when the request is repeated, such as an order's number")
	// ErrUnits says that the number of units is out of range.
	ErrUnits = fmt.Errorf("stock: units out of range: use 1 to %d, in all", MaxUnits)
	// ErrUntil says that the end of the sale is out of range.
	ErrUntil = errors.New("stock: until is out of range: use a time in the future, no further away than 366 days")
)

// These errors report a bug in the calling program.
var (
	errStock       = errors.New("stock: a nil or zero Stock: make one with New, and check its error first")
	errReservation = errors.New("stock: a nil or zero Reservation: Reserve or Resume returned an error, check it first")
)

var errRing = fmt.Errorf("%w: rdb is a Ring, whose clients can disagree about which server has an item, and then it is sold twice: "+
	"use a Client, a failover Client or a ClusterClient", script.ErrClient)
