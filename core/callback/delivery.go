package callback

import (
	"context"
	"net/http"

	"github.com/neap-go/neap/core/gate"
)

// Delivery is a request as the provider sent it.
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

// Verify proves that a delivery is the provider's, by its signature. It returns the part
// of the delivery that is proven: as a rule the body, decrypted if the provider encrypts
// it. An error says that the delivery is not the provider's; the answer is a 401. An error
// that wraps [ErrCannotVerify] says that Verify does not know; the provider is told to come
// later. Return it if Verify cannot get an answer or a certificate that it needs, and never
// because of what the delivery says.
//
// Verify runs before Redis is asked anything, for many deliveries at once. It must neither
// change the delivery nor keep it. ctx ends at the preset's Deadline. Heed it if Verify
// asks the provider: after the Deadline the provider is told to come later, whatever Verify
// returns. A stranger can trigger Verify: if it asks the
// provider about unsigned deliveries, strangers send requests through your server.
type Verify func(ctx context.Context, d *Delivery) (payload []byte, err error)

// Handler does what an event asks for, such as to book a payment. It returns nil if that is
// done, or if there is nothing to do. Return nil also for an event of a type or status that
// you do not handle; otherwise the provider sends it again until it gives up. Return
// [Reject] for an event that will never be done, and any other error for one that may be
// done later.
//
// It runs on a goroutine of its own, for many events at once. Its context does not end with
// the request. It ends if the event's claim is lost, or the lock of Options.Serialize;
// idempotency.FromContext and lock.FromContext return these two.
//
// A handler that knows that it has done nothing may abandon the claim and return an error,
// so that nothing is in doubt. Whenever the handler itself concludes the claim, the provider
// is told to come later. If it concludes with a result of its own, the event is never
// acknowledged: only nil, DoneWithout or an empty result stands for done.
//
// It may run again if its process died, or if it failed. So what it writes should carry
// Event.Key under a unique constraint, in the transaction that does the work.
type Handler func(ctx context.Context, e *Event) error

// Event is what a delivery reports, or one of several items of it.
type Event struct {
	Item
	Delivery *Delivery
	// Key is the key under which the guard remembers the event.
	Key string
	// Attempt counts the runs that were begun for the event, this one included.
	Attempt int64
	// Fence grows with each run.
	Fence int64
}

// Item is what a preset finds in a payload.
type Item struct {
	// DeliveryID is the provider's id of this event, the same when it sends the event
	// again; "" if there is none.
	DeliveryID string
	// Transition says what happened to which order: it names the order, the event and,
	// for a refund, which refund. "" if the preset finds none.
	Transition string
	// Order is the order that the event is about: the shop's number of it if the provider
	// sends that, and otherwise the object of the event, which for a refund may be the
	// refund. "" if there is none. Options.Serialize keeps events of one Order from
	// running together.
	Order string
	// Payload is what Verify returned, or the item's part of it.
	Payload []byte
}
