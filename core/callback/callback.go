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
	// OnError hears why something was not acknowledged: a body that is too long
	// (gate.ErrBodyTooLarge) or broken, what failed Verify ([ErrUnverified]), what
	// Verify could not decide ([ErrCannotVerify]), what is malformed
	// ([ErrMalformed]), what the handler returned, a panic of Verify or of the
	// handler, a claim that was lost, a deadline that passed ([ErrDeadline]), a Redis
	// that did not answer. It hears of a rejection under AckRejected too, and of a lock of
	// Serialize that was not given back; but not of an event or order that another
	// delivery is at, of a client that is gone, nor of what was rejected before. What
	// is about one event is an [*EventError], which says which, for an operator.
	//
	// It is called by many goroutines at once, also when the request has been
	// answered. The answer waits for it, though not past the deadline; a panic of it
	// is swallowed. Its context has the request's values and does not end. Such an
	// error may name keys and is for operators. Nil hears nothing.
	OnError func(ctx context.Context, err error)
}

var (
	// ErrUnverified is what OnError finds by errors.Is in a refusal of Verify: the
	// delivery is not the provider's. A Verify need not return it, since every error
	// refuses that is not ErrCannotVerify.
	ErrUnverified = errors.New("callback: the delivery is not proven to be the provider's")
	// ErrCannotVerify is for a Verify that cannot decide now, for example because the
	// provider's API is down. Wrap it. The provider is told to come later, and OnError
	// is told the error as it is.
	ErrCannotVerify = errors.New("callback: the delivery cannot be verified now")
	// ErrMalformed says that a delivery which was verified has not the form that
	// its preset expects. It is refused, and OnError is told.
	ErrMalformed = errors.New("callback: the delivery is malformed")
	// ErrDeadline says that the provider was told to come later. The handler goes
	// on; what Verify was not through with in time never comes to it.
	ErrDeadline = errors.New("callback: the deadline passed")
)

// Reject is what a Handler returns for an event that it will never accept, such
// as a payment of a wrong amount: it is remembered, and not handed to it again.
func Reject(err error) error {
	if err == nil {
		err = errors.New("rejected")
	}
	return &rejection{err}
}

type rejection struct{ err error }

func (r *rejection) Error() string { return "callback: " + r.err.Error() }
func (r *rejection) Unwrap() error { return r.err }

// New makes the endpoint of a provider, to be mounted with the Handler of an
// adapter. It acknowledges an event when the handler is through with it and Redis
// has noted that, and never before: an event that another delivery is at, a
// handler that fails, panics or takes longer than the preset's Deadline, a claim
// that was lost, and a Redis that does not answer have the provider come later.
// A verify that panics, takes as long or returns [ErrCannotVerify] does so too,
// before Redis is asked anything.
// An event that is done is acknowledged without being handled again, for the
// guard's Retention, which must not be below the preset's Keep.
//
// A delivery that fails verify is answered with the bytes of Refused and the
// status 401, and Redis is not asked. One that is malformed is answered with
// Refused, and a longer one than MaxBody with those bytes and 413.
//
// A delivery costs two round trips for each of its events that is handled, and one
// for each that was before; with Serialize two more.
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
