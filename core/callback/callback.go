package callback

import (
	"context"
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
)

// DefaultMaxBody is how many bytes of a delivery are read unless told otherwise.
const DefaultMaxBody = 1 << 20

// maxItems is how many events one delivery may have.
const maxItems = 100

// Options are the options of [New].
type Options struct {
	// MaxBody is the longest delivery that is read, in bytes; a longer one is
	// refused with a 413. Zero is [DefaultMaxBody].
	MaxBody int64
	// Serialize keeps two events of one Order from running together: the second
	// is answered with Later. An event without an Order waits for none. It costs
	// another two round trips an event.
	Serialize *lock.Locker
	// AckRejected acknowledges what the handler rejected, instead of refusing it.
	AckRejected bool
	// OnError is told why something was not acknowledged: a body that is too long
	// (gate.ErrBodyTooLarge) or broken (gate.ErrBodyBroken), a delivery that fails Verify
	// ([ErrUnverified]) or that Verify cannot decide ([ErrCannotVerify]), a malformed one
	// ([ErrMalformed]), an error of the handler, a panic of Verify or of the handler, a
	// claim that was lost, a deadline that passed ([ErrDeadline]), a Redis that did not
	// answer. It is also told of a rejection under AckRejected, and of a lock of Serialize
	// that was not given back. It is not told of an event or order that another delivery
	// is at, of a client that is gone, or of an event that was rejected before. An error
	// about one event is an [*EventError], which says which event it is.
	//
	// It is called by many goroutines at once, also when the request has been answered.
	// The answer waits for it, though not past the deadline. A panic of it is swallowed.
	// Its context has the request's values and does not end. The errors may name keys: they
	// are for operators. If it is nil, nothing is told.
	OnError func(ctx context.Context, err error)
}

var (
	// ErrUnverified is in the error that OnError is told if Verify refuses a delivery:
	// errors.Is finds it. A Verify need not return it: any error but ErrCannotVerify
	// refuses the delivery.
	ErrUnverified = errors.New("callback: the delivery is not proven to be the provider's")
	// ErrCannotVerify is for a Verify that cannot decide now, for example because the
	// provider's API is down. Wrap it. The provider is told to come later, and OnError
	// is told the error as it is.
	ErrCannotVerify = errors.New("callback: the delivery cannot be verified now")
	// ErrMalformed says that a delivery was verified and does not have the form that its
	// preset expects. It is refused, and OnError is told.
	ErrMalformed = errors.New("callback: the delivery is malformed")
	// ErrDeadline says that the provider was told to come later, since Verify or the
	// handler took longer than the preset's Deadline. The handler goes on. If Verify took
	// too long, the handler is not called.
	ErrDeadline = errors.New("callback: the deadline passed")
)

// Reject makes the error that a Handler returns for an event that it will never accept,
// such as a payment of a wrong amount. The rejection is remembered, and the event is not
// handed to the handler again.
func Reject(err error) error {
	if err == nil {
		err = errors.New("rejected")
	}
	return &rejection{err}
}

type rejection struct{ err error }

func (r *rejection) Error() string { return "callback: " + r.err.Error() }
func (r *rejection) Unwrap() error { return r.err }

// New makes the endpoint of a provider. Mount it with the Handler of an adapter.
//
// The endpoint acknowledges an event after the handler is through with it and Redis has
// noted that, and never before. It tells the provider to come later if another delivery is
// at the event, if the handler fails, panics or takes longer than the preset's Deadline, if
// the claim was lost, or if Redis does not answer. It does so too if verify panics, takes
// as long or returns [ErrCannotVerify]; then Redis is not asked. An event that is done is
// acknowledged without being handled again, for the guard's Retention, which must not be
// below the preset's Keep.
//
// A delivery that fails verify is answered with the preset's Refused, but with the status
// 401, and Redis is not asked. A malformed one is answered with Refused, and one that is
// longer than MaxBody with Refused and the status 413.
//
// An event that is handled costs two round trips, and two more with Serialize. An event
// that was handled before costs one.
//
// The error names the faults of its arguments, each with the remedy.
func New(p Preset, guard *idempotency.Guard, verify Verify, handle Handler, opts *Options) (*Endpoint, error) {
	e := &Endpoint{preset: p, guard: guard, verify: verify, handle: handle}
	if opts != nil {
		e.opts = *opts
	}
	faults := []error{p.check()}
	if guard == nil {
		faults = append(faults, errors.New("guard is nil: make one with idempotency.New"))
	} else if kept := guard.Retention(); kept < p.Keep {
		faults = append(faults, fmt.Errorf(
			"the guard's Retention is %v: use at least %v, for as long %s may send an event again", kept, p.Keep, p.Name))
	}
	if verify == nil {
		faults = append(faults, errors.New("verify is nil: without it anybody could send events"))
	}
	if handle == nil {
		faults = append(faults, errors.New("handle is nil: say what an event does"))
	}
	if e.opts.Serialize != nil {
		if _, named := e.opts.Serialize.Owner(); named {
			faults = append(faults, errors.New("Serialize was made by As, and all events would be one owner's: use the locker that lock.New made"))
		}
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
	return e, nil
}
