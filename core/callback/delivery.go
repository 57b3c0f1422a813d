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

// Verify proves that a delivery is the provider's, by its signature, and returns
// what of it is to be believed: as a rule the body, decrypted where the provider
// encrypts. An error says that the delivery is not the provider's, and the answer
// is a 401. An error that wraps [ErrCannotVerify] says that Verify does not know,
// and the provider is told to come later: return it when an API or a certificate
// that Verify needs does not answer, and never for what the delivery says.
//
// Verify runs before Redis is asked anything, for many deliveries at once, and must
// neither change the delivery nor keep it. ctx ends at the preset's Deadline, which
// a Verify that asks the provider has to heed: after that the provider is told to
// come later, whatever Verify returns. A stranger can trigger Verify: if it asks the
// provider about unsigned deliveries, strangers send requests through your server.
type Verify func(ctx context.Context, d *Delivery) (payload []byte, err error)

// Handler does what an event asks for, such as to book a payment. nil says that
// it is done, or that there is nothing to do: it is what to return for an event of
// a type or status that is not handled, which otherwise is sent again until the
// provider gives up. [Reject] says that it never will be done; any other error,
// that it may be later. It runs in a goroutine of its own, for many events at once; its context
// does not end with the request, but when the event's claim is lost, or the lock
// of Options.Serialize: idempotency.FromContext and lock.FromContext find them. One
// that knows that it has done nothing may abandon the claim and return an error, so
// that nothing is in doubt; after one that concludes it in any way the provider is
// told to come later. An event that a handler has concluded with a result of its own
// is never acknowledged: only nil, DoneWithout or an empty result stands for done.
//
// It may run again when its process died, or when it failed: what it writes
// should carry Event.Key under a unique constraint, in the transaction that does
// the work.
type Handler func(ctx context.Context, e *Event) error

// Event is what a delivery tells, or one item of it.
type Event struct {
	Item
	Delivery *Delivery
	// Key is what the guard knows the event by.
	Key string
	// Attempt counts the runs that were begun for it, this one included.
	Attempt int64
	// Fence grows with each of them.
	Fence int64
}

// Item is what a preset finds in a payload.
type Item struct {
	// DeliveryID is what the provider calls this event, the same when it sends
	// it again; "" where there is no such thing.
	DeliveryID string
	// Transition is what happened to the order: the order, the event and, of a
	// refund, which one. "" where the preset knows of none.
	Transition string
	// Order is what it happened to, by which Options.Serialize keeps events apart:
	// the shop's number of it where the provider sends that, else the object that
	// the event is about, which of a refund may be the refund. "" where there is
	// no such thing.
	Order string
	// Payload is what Verify returned, or the item's part of it.
	Payload []byte
}
