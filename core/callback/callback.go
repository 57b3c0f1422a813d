package callback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/gate"
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
	// Serialize keeps two events of one order from running together: the second
	// is answered with Later. It costs another two round trips an event.
	Serialize *lock.Locker
	// AckRejected acknowledges what the handler rejected, instead of refusing it.
	AckRejected bool
	// OnError hears of what was not acknowledged, but for events that another
	// delivery is at: what failed Verify ([ErrUnverified]) or is malformed
	// ([ErrMalformed]), what the handler returned, a panic of it, a deadline that
	// passed ([ErrDeadline]), a Redis that did not answer. It is called by many
	// goroutines at once, also when the request has been answered. Such an error
	// may name keys and is for operators. Nil hears nothing.
	OnError func(ctx context.Context, err error)
}

var (
	// ErrUnverified is wrapped round what Verify fails with.
	ErrUnverified = errors.New("callback: the delivery is not proven to be the provider's")
	// ErrDeadline says that the provider was told to come later, and the handler goes on.
	ErrDeadline = errors.New("callback: the deadline passed before the handler was through")
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
func New(p Preset, guard *idempotency.Guard, verify Verify, handle Handler, opts *Options) (gate.Gate, error) {
	e := &endpoint{preset: p, guard: guard, verify: verify, handle: handle}
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

type endpoint struct {
	preset Preset
	guard  *idempotency.Guard
	verify Verify
	handle Handler
	opts   Options
}

func (e *endpoint) Enter(r gate.Request) gate.Pass {
	reply := e.answer(r)
	return gate.Pass{Reply: &reply}
}

func (e *endpoint) answer(r gate.Request) gate.Reply {
	arrived := time.Now()
	ctx := r.Context()
	d, err := newDelivery(r, e.opts.MaxBody)
	switch {
	case errors.Is(err, gate.ErrBodyTooLarge):
		return e.refused(413)
	case errors.Is(err, gate.ErrBodyBroken):
		return e.refused(400)
	case err != nil:
		e.tell(ctx, err)
		return e.preset.Later
	}
	payload, err := e.verify(ctx, d)
	if err != nil {
		e.tell(ctx, fmt.Errorf("%w: %w", ErrUnverified, err))
		return e.refused(401)
	}
	events, err := e.events(d, payload)
	if err != nil {
		e.tell(ctx, err)
		return e.preset.Refused
	}
	ended := make(chan verdict, 1)
	go func() { ended <- e.run(context.WithoutCancel(ctx), events) }()
	deadline := time.NewTimer(time.Until(arrived.Add(e.preset.Deadline)))
	defer deadline.Stop()
	select {
	case v := <-ended:
		return e.reply(v)
	case <-deadline.C:
		e.tell(ctx, ErrDeadline)
	case <-ctx.Done():
	}
	return e.preset.Later
}

// events are those of a delivery, each with its key.
func (e *endpoint) events(d *Delivery, payload []byte) ([]*Event, error) {
	items, err := e.preset.Items(d, payload)
	switch {
	case err != nil:
		return nil, err
	case len(items) == 0:
		return nil, malformed("it has no events")
	case len(items) > maxItems:
		return nil, malformed(fmt.Sprintf("it has more than %d events", maxItems))
	}
	events := make([]*Event, len(items))
	for i, item := range items {
		key := e.preset.key(item)
		if key == "" {
			return nil, malformed(fmt.Sprintf("event %d has no key", i))
		}
		events[i] = &Event{Item: item, Delivery: d, Key: e.preset.Name + ":" + key}
	}
	return events, nil
}

// refused is Refused with another status.
func (e *endpoint) refused(status int) gate.Reply {
	reply := e.preset.Refused
	reply.Status = status
	return reply
}

func (e *endpoint) reply(v verdict) gate.Reply {
	switch {
	case v == done, v == rejected && e.opts.AckRejected:
		return e.preset.Done
	case v == rejected:
		return e.preset.Refused
	}
	return e.preset.Later
}

func (e *endpoint) tell(ctx context.Context, err error) {
	if e.opts.OnError != nil {
		e.opts.OnError(ctx, err)
	}
}
