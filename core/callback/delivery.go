package callback

import (
	"context"
	"net/http"

	"github.com/neap-go/neap/core/gate"
)

// Delivery is a request as the provider sent it. A Verify must not change it.
type Delivery struct {
	Method, Path, RawQuery string
	Header                 http.Header
	Body                   []byte
}

func newDelivery(r gate.Request, maxBody int64) (*Delivery, error) {
	body, err := r.Body(maxBody)
	if err != nil {
		return nil, err
	}
	d := &Delivery{Method: r.Method(), Path: r.Path(), RawQuery: r.RawQuery(), Header: http.Header{}, Body: body}
	for name, value := range r.Headers() {
		d.Header.Add(name, value)
	}
	return d, nil
}

// Verify proves that a delivery is the provider's, usually by its signature. It returns
// the part of the delivery that is proven. As a rule that is the body, decrypted if the
// provider encrypts it.
//
// If Verify returns an error, the delivery is not the provider's, and the answer is a
// 401. An error that wraps [ErrCannotVerify] says that Verify does not know; the provider
// is then told to send again later. Return it if Verify cannot get an answer or a
// certificate that it needs, and never because of what the delivery says. An error that
// wraps [ErrMalformed] says that the delivery is the provider's and cannot be read; it gets
// the preset's Refused. One that wraps [ErrNoAttack] refuses the delivery, and OnError is
// not told.
//
// Verify runs before Redis is asked anything, for many deliveries at once. It must
// neither change the delivery nor keep it. ctx ends at the preset's Deadline. Heed ctx if
// Verify asks the provider: after the Deadline the provider is told to send again later,
// whatever Verify returns.
//
// A stranger can trigger Verify. If it asks the provider about unsigned deliveries,
// strangers send requests through your server.
type Verify func(ctx context.Context, d *Delivery) (payload []byte, err error)

// Handler does what an event asks for, such as to book a payment. It returns
//
//   - nil if that is done, or if there is nothing to do. Return nil also for an event of
//     a type or status that you do not handle; otherwise the provider sends it again
//     until it gives up;
//   - [Reject] for an event that will never be done;
//   - any other error for an event that may be done later.
//
// It runs on a goroutine of its own, for many events at once. Its context does not end
// with the request. It ends if the event's claim is lost, or the lock of
// Options.Serialize. idempotency.FromContext and lock.FromContext return these two.
//
// A handler that knows that it has done nothing may conclude the claim with
// idempotency.NothingDone and return an error, so that nothing is in doubt. Whenever the
// handler itself concludes the claim, the provider is told to send again later. The next
// delivery is then acknowledged if the claim was concluded with DoneWithout, or with DoneWith
// and any result but "rejected".
//
// The handler may run again if its process died, if Redis was away for longer than the
// guard's lease, or if it failed. So what it writes should carry Event.Key under a unique
// constraint, in the transaction that does the work.
type Handler func(ctx context.Context, e *Event) error

// Event is what a delivery reports, or one of several items of a delivery.
type Event struct {
	Item
	Delivery *Delivery
	// Key is the key under which the guard remembers the event.
	Key string
	// Attempt is how many times the event's run was begun, this time included.
	Attempt int64
	// Fence is a number that grows with each run.
	Fence int64
}

// Item is what a preset finds about one event in a payload.
type Item struct {
	// DeliveryID is the provider's id of this event, the same each time the provider
	// sends the event. It is "" if there is none.
	DeliveryID string
	// Transition says what happened to which order. It names the order, the event and,
	// for a refund, which refund. It is "" if the preset finds none.
	Transition string
	// Order is the order that the event is about: the shop's number of the order if the
	// provider sends that. Otherwise it is the object of the event, which may be the
	// refund if the event is about one. It is "" if there is none. Options.Serialize
	// keeps events of one Order from running together.
	Order string
	// Payload is what Verify returned, or the part of it that is about this item.
	Payload []byte
}
