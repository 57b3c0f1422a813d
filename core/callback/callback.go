package callback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
)

// DefaultMaxBody is the default of Options.MaxBody, 1 MiB.
const DefaultMaxBody = 1 << 20

// maxItems is the largest number of events of one delivery.
const maxItems = 100

// Options are the options of [New]. The zero value is ready to use. New copies it.
type Options struct {
	// MaxBody is the longest delivery that is read, in bytes. A longer one is refused
	// with a 413. 0 means [DefaultMaxBody].
	MaxBody int64
	// Serialize, if it is set, keeps two events of one Order from running together: the
	// second waits for the first, as long as lock.Options.Wait says, also past the deadline.
	// If that is in vain, it is answered with Later, and OnError is told (lock.ErrHeld). As
	// must not have made it. An event without an Order waits for no other, and OnError is
	// told ([ErrNoOrder]). The events of one delivery are handled one after the other, so
	// those behind it wait, too. It costs two more round trips for each event that need not
	// wait.
	Serialize *lock.Locker
	// DistinctDeliveries makes two deliveries with equal bytes and different ids two
	// events. It is for a preset with UnsignedID, such as [GitHub], and New refuses it for
	// any other. The price: whoever has a copy of a delivery can have it handled again, as
	// often as they like, each time under another id. So set it only if nothing is lost by
	// that, for example because the handler reads the present state from the provider's
	// API.
	DistinctDeliveries bool
	// AckRejected acknowledges events that the handler rejected. Without it they are
	// refused.
	AckRejected bool
	// OnError is told why something was not acknowledged:
	//
	//   - a body that is too long (gate.ErrBodyTooLarge), broken (gate.ErrBodyBroken), or read
	//     by middleware before (gate.ErrBodyConsumed);
	//   - a delivery that fails Verify ([ErrUnverified]), or that Verify cannot decide
	//     ([ErrCannotVerify]);
	//   - a malformed delivery ([ErrMalformed]);
	//   - an error of the handler, or a panic of Verify or of the handler;
	//   - a claim that was lost or is in doubt from then on, or a lock of Serialize that was held
	//     for too long;
	//   - a deadline that passed ([ErrDeadline]);
	//   - a Redis that did not answer. The conclusion of an event goes on in the background.
	//     If it ends there in a loss (idempotency.ErrLost: another delivery has handled the
	//     event too) or a doubt, or is given up (idempotency.ErrDropped), that is told once more.
	//
	// It is also told of a rejection ([ErrRejected]), of a lock of Serialize that was not
	// given back, of an event that Serialize cannot keep apart ([ErrNoOrder]), and of an
	// event that was not handled because it came before under another DeliveryID
	// ([ErrAnotherDelivery]). It is not told of a refused delivery that is no attack
	// ([ErrNoAttack]) or of a client that is gone. Nor is it told, except by
	// ErrAnotherDelivery, of an event that another delivery is handling or that was rejected
	// before. An error about one event is an [*EventError], which has the event.
	//
	// Many goroutines call OnError at once, also after the request has been answered. The
	// answer waits for it, but not past the deadline. If it panics, the panic is
	// swallowed. Its context has the request's values and does not end. The errors may
	// name keys: they are for operators. If OnError is nil, nothing is reported.
	OnError func(ctx context.Context, err error)
}

var (
	// ErrUnverified is wrapped by the error that OnError gets if Verify refuses a
	// delivery. Your own Verify need not return it: any error except ErrCannotVerify
	// refuses the delivery, and OnError gets this one unless that error wraps ErrNoAttack or
	// ErrMalformed.
	ErrUnverified = errors.New("callback: the delivery is not proven to be the provider's")
	// ErrCannotVerify is for a Verify that cannot decide now, for example because the
	// provider's API is down. Wrap it. The provider is told to send again later, and
	// OnError gets the error as it is.
	ErrCannotVerify = errors.New("callback: the delivery cannot be verified now")
	// ErrNoAttack is wrapped by the error of a Verify that refuses a delivery which is to be
	// expected, such as one that the provider has signed falsely on purpose. The answer is
	// that to a forgery. OnError is not told.
	ErrNoAttack = errors.New("callback: the delivery is not proven to be the provider's, and is no attack")
	// ErrMalformed says that a delivery was verified, and does not have the form that its
	// preset or its Verify expects. It is refused, and OnError is told.
	ErrMalformed = errors.New("callback: the delivery is malformed")
	// ErrDeadline says that the provider was told to send again later, because Verify or
	// the handler took longer than the preset's Deadline. The handler goes on, and so does
	// an event that waits for Options.Serialize. If Verify took too long, the handler is not
	// called.
	ErrDeadline = errors.New("callback: the deadline passed")
	// ErrRejected says that the handler has rejected an event: the error of [Reject] wraps
	// this one, beside the handler's reason.
	ErrRejected = errors.New("callback: the event was rejected")
	// ErrAnotherDelivery says that an event was not handled, because one with the same
	// Transition was handled before under another DeliveryID, or is being handled. The answer
	// is that of the earlier event, or Later. The provider does not sign the DeliveryID
	// (Preset.UnsignedID). Either somebody with a copy has sent it again, or the same has
	// happened twice: read the present state from the provider's API, or set
	// Options.DistinctDeliveries.
	ErrAnotherDelivery = errors.New("callback: an event with the same bytes came before under another delivery id, so this one was not handled")
	// ErrNoOrder says that Options.Serialize is set and Preset.Items found no Order of an
	// event, so it was handled without the lock.
	ErrNoOrder = errors.New("callback: the event has no order, so Serialize does not keep it apart from others")
)

// Reject returns the error that a Handler returns for an event that it will never accept,
// such as a payment of a wrong amount; any error that wraps [ErrRejected] means the same. The rejection is remembered, and the event is not
// given to the handler again. The error wraps err and [ErrRejected]; a nil err is allowed.
func Reject(err error) error {
	if err == nil {
		err = errors.New("rejected")
	}
	return &rejection{err}
}

type rejection struct{ err error }

func (r *rejection) Error() string   { return "callback: " + r.err.Error() }
func (r *rejection) Unwrap() []error { return []error{ErrRejected, r.err} }

// New makes the endpoint of a provider. Mount it with the Handler of an adapter. New
// sends nothing. Nil opts mean the zero Options.
//
// The endpoint acknowledges an event after the handler has finished with it and Redis has
// noted that, and never before. It tells the provider to send again later
//
//   - if another delivery is handling the event, or Serialize has waited in vain for another
//     event of its order;
//   - if the handler fails, panics or takes longer than the preset's Deadline;
//   - if the claim was lost, Redis does not answer, whatever the guard's failure mode is, or
//     the event is in doubt (idempotency.ErrInDoubt);
//   - if verify panics, takes longer than the Deadline, or returns [ErrCannotVerify].
//     Redis is then not asked.
//
// An event that is done is acknowledged without being handled again, for the guard's
// Retention. That must not be shorter than the preset's Retention.
//
// A delivery that fails verify gets the preset's Refused, but with the status 401, and
// Redis is not asked. A malformed delivery gets Refused. One that is longer than MaxBody
// gets Refused with the status 413.
//
// An event that is handled costs two round trips, and two more with Serialize. An event
// that was handled before costs one, or two if it comes under another DeliveryID that is
// not signed.
//
// The error joins all faults of the arguments, each with the remedy.
func New(p Preset, guard *idempotency.Guard, verify Verify, handle Handler, opts *Options) (*Endpoint, error) {
	e := &Endpoint{preset: p, verify: verify, handle: handle}
	if opts != nil {
		e.opts = *opts
	}
	faults := []error{p.check()}
	closed, err := guard.WithFail(idempotency.FailClosed)
	if err != nil {
		faults = append(faults, fmt.Errorf("guard: %w", err))
	} else if kept := guard.Retention(); kept < p.Retention {
		faults = append(faults, fmt.Errorf(
			"the guard's Retention is %v: use at least %v, for as long as %s may send an event again", kept, p.Retention, p.Name))
	}
	if verify == nil {
		faults = append(faults, errors.New("verify is nil: without it anybody could send events"))
	}
	if handle == nil {
		faults = append(faults, errors.New("handle is nil: say what an event does"))
	}
	if by := e.opts.Serialize; by != nil {
		if _, err := by.WithWait(time.Second); err != nil { // it is the zero Locker
			faults = append(faults, fmt.Errorf("Serialize: %w", err))
		} else if _, named := by.Owner(); named {
			faults = append(faults, errors.New("Serialize was made by As, and all events would be one owner's: use the locker that lock.New made"))
		}
	}
	if e.opts.DistinctDeliveries && !p.UnsignedID {
		faults = append(faults, fmt.Errorf("DistinctDeliveries is set, and it is for a preset with UnsignedID, which %s has not: leave it out", p.Name))
	}
	switch {
	case e.opts.MaxBody == 0:
		e.opts.MaxBody = DefaultMaxBody
	case e.opts.MaxBody < 0:
		faults = append(faults, fmt.Errorf("MaxBody is %d: use a positive number of bytes, or 0 for %d", e.opts.MaxBody, DefaultMaxBody))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("callback.New: %w", err)
	}
	e.guard = closed
	return e, nil
}
