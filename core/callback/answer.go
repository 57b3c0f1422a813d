package callback

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
)

// Endpoint serves the deliveries of one provider. It is a [gate.Endpoint]: mount it with
// the Handler of an adapter. It is safe for concurrent use. The zero
// Endpoint is not usable.
type Endpoint struct {
	preset Preset
	guard  *idempotency.Guard
	verify Verify
	handle Handler
	opts   Options

	handling atomic.Int64 // deliveries whose events are handled
}

var errEndpoint = errors.New("callback: a nil or zero Endpoint: make one with New, and check its error first")

// Serve answers one delivery, as [New] describes.
func (e *Endpoint) Serve(r gate.Request) gate.Reply {
	misuse.Made(e != nil && e.guard != nil, errEndpoint)
	arrived := time.Now()
	ctx := r.Context()
	d, err := newDelivery(r, e.opts.MaxBody)
	limited, cancel := context.WithDeadline(ctx, arrived.Add(e.preset.Deadline))
	defer cancel()
	if err != nil {
		within(limited, func() bool { e.tell(ctx, err); return true })
		return e.unread(err)
	}
	p, through := within(limited, func() proof { return e.prove(limited, d) })
	switch {
	case !through, limited.Err() != nil:
		return e.late(limited, "Verify")
	case p.events == nil:
		return p.otherwise
	}
	e.handling.Add(1)
	v, through := within(limited, func() verdict {
		defer e.handling.Add(-1)
		return e.run(context.WithoutCancel(ctx), p.events)
	})
	if !through {
		return e.late(limited, "the handler")
	}
	return e.reply(v)
}

// within runs f in a goroutine of its own. It waits until f returns, until its goroutine
// ends without a result, or until ctx ends.
func within[T any](ctx context.Context, f func() T) (result T, through bool) {
	ended := make(chan T, 1)
	background.Go(func() {
		defer close(ended)
		ended <- f()
	})
	select {
	case result, through = <-ended:
		return result, through
	case <-ctx.Done():
		return result, false
	}
}

// unread answers a delivery whose body could not be read.
func (e *Endpoint) unread(err error) gate.Reply {
	switch {
	case errors.Is(err, gate.ErrBodyTooLarge):
		return e.refused(413)
	case errors.Is(err, gate.ErrBodyBroken):
		return e.refused(400)
	}
	return e.preset.Later
}

// late answers after the deadline, to a client that is gone, or when the goroutine ended
// without a result. Only the deadline must still be reported to the hook. The answer does
// not wait for the hook.
func (e *Endpoint) late(limited context.Context, who string) gate.Reply {
	if errors.Is(limited.Err(), context.DeadlineExceeded) {
		background.Go(func() { e.tell(limited, fmt.Errorf("%w before %s returned", ErrDeadline, who)) })
	}
	return e.preset.Later
}

// proof is the result of Verify and of the preset's Items.
type proof struct {
	events    []*Event
	otherwise gate.Reply // the answer if there are no events
}

func (e *Endpoint) prove(ctx context.Context, d *Delivery) (p proof) {
	returned := false
	defer func() {
		if cause := recover(); cause != nil || !returned {
			e.tell(ctx, stopped(cause))
			p = proof{otherwise: e.preset.Later}
		}
	}()
	p = e.proved(ctx, d)
	returned = true
	return p
}

func (e *Endpoint) proved(ctx context.Context, d *Delivery) proof {
	payload, err := e.verify(ctx, d)
	switch {
	case ctx.Err() != nil: // the provider is no longer waiting
		return proof{otherwise: e.preset.Later}
	case errors.Is(err, ErrCannotVerify):
		e.tell(ctx, err)
		return proof{otherwise: e.preset.Later}
	case errors.Is(err, ErrMalformed):
		e.tell(ctx, err)
		return proof{otherwise: e.preset.Refused}
	case errors.Is(err, ErrNoAttack):
		return proof{otherwise: e.refused(401)}
	case err != nil:
		e.tell(ctx, fmt.Errorf("%w: %w", ErrUnverified, err))
		return proof{otherwise: e.refused(401)}
	}
	events, err := e.events(d, payload)
	if err != nil {
		e.tell(ctx, err)
		return proof{otherwise: e.preset.Refused}
	}
	return proof{events: events}
}

// events returns the events of a delivery, each with its key.
func (e *Endpoint) events(d *Delivery, payload []byte) ([]*Event, error) {
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
		key := e.key(item)
		if key == "" {
			return nil, malformed(fmt.Sprintf("event %d has no key", i))
		}
		events[i] = &Event{Item: item, Delivery: d, Key: e.preset.Name + ":" + key}
	}
	return events, nil
}

// refused is Preset.Refused with another status.
func (e *Endpoint) refused(status int) gate.Reply {
	reply := e.preset.Refused
	reply.Status = status
	return reply
}

func (e *Endpoint) reply(v verdict) gate.Reply {
	switch {
	case v == done, v == rejected && e.opts.AckRejected:
		return e.preset.Done
	case v == rejected:
		return e.preset.Refused
	}
	return e.preset.Later
}

// tell calls OnError and recovers from its panic. It runs in goroutines in which no other
// function recovers, and any client can send a delivery that leads to it.
func (e *Endpoint) tell(ctx context.Context, err error) {
	if e.opts.OnError == nil {
		return
	}
	defer func() { _ = recover() }()
	e.opts.OnError(context.WithoutCancel(ctx), err)
}
