package callback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

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
	case err == nil:
	case errors.Is(err, gate.ErrBodyTooLarge):
		e.tell(ctx, err)
		return e.refused(413)
	case errors.Is(err, gate.ErrBodyBroken):
		e.tell(ctx, err)
		return e.refused(400)
	default:
		e.tell(ctx, err)
		return e.preset.Later
	}
	limited, cancel := context.WithDeadline(ctx, arrived.Add(e.preset.Deadline))
	defer cancel()
	p, _ := within(limited, func() proof { return e.prove(limited, d) })
	switch {
	case limited.Err() != nil:
		return e.late(limited, "Verify")
	case p.events == nil:
		return p.otherwise
	}
	v, through := within(limited, func() verdict { return e.run(context.WithoutCancel(ctx), p.events) })
	if !through {
		return e.late(limited, "the handler")
	}
	return e.reply(v)
}

// within has f run in a goroutine of its own, and waits for it until ctx ends.
func within[T any](ctx context.Context, f func() T) (result T, through bool) {
	ended := make(chan T, 1)
	go func() { ended <- f() }()
	select {
	case result = <-ended:
		return result, true
	case <-ctx.Done():
		return result, false
	}
}

// late is told by the deadline, or to a client that is gone.
func (e *endpoint) late(limited context.Context, who string) gate.Reply {
	if errors.Is(limited.Err(), context.DeadlineExceeded) {
		e.tell(limited, fmt.Errorf("%w before %s was through", ErrDeadline, who))
	}
	return e.preset.Later
}

// proof is what Verify and the preset make of a delivery.
type proof struct {
	events    []*Event
	otherwise gate.Reply // where there are none
}

func (e *endpoint) prove(ctx context.Context, d *Delivery) (p proof) {
	defer func() {
		if cause := recover(); cause != nil {
			e.tell(ctx, panicked(cause))
			p = proof{otherwise: e.preset.Later}
		}
	}()
	payload, err := e.verify(ctx, d)
	switch {
	case ctx.Err() != nil: // nobody waits for it
		return proof{otherwise: e.preset.Later}
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
		e.opts.OnError(context.WithoutCancel(ctx), err)
	}
}
