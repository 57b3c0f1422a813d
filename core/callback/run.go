package callback

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/internal/undo"
)

// verdict is what became of an event. The worst verdict of a delivery counts.
type verdict uint8

const (
	done verdict = iota
	rejected
	later
)

// These are the results that neap keeps for an event.
const (
	resultDone     = "done"
	resultRejected = "rejected"
)

// run handles the events one after the other, also after one that fails.
func (e *Endpoint) run(ctx context.Context, events []*Event) verdict {
	worst := done
	for _, event := range events {
		worst = max(worst, e.event(ctx, event))
	}
	return worst
}

func (e *Endpoint) event(ctx context.Context, event *Event) (v verdict) {
	returned := false
	defer func() {
		if cause := recover(); cause != nil || !returned {
			e.tellOf(ctx, event, stopped(cause))
			v = later
		}
	}()
	v = e.begun(ctx, event)
	returned = true
	return v
}

func (e *Endpoint) begun(ctx context.Context, event *Event) verdict {
	answer, err := e.guard.Begin(ctx, event.Key, e.fingerprint(event))
	another := errors.Is(err, idempotency.ErrMismatch)
	if another {
		answer, err = e.guard.BeginAny(ctx, event.Key, e.fingerprint(event))
	}
	inFlight, noResult := errors.Is(err, idempotency.ErrInFlight), errors.Is(err, idempotency.ErrNoResult)
	if another && (answer.Done || inFlight || noResult) {
		e.tellOf(ctx, event, ErrAnotherDelivery)
	}
	switch {
	case inFlight:
		return later
	case noResult:
		return done
	case err != nil: // a result that cannot be read may be that of a rejection
		e.tellOf(ctx, event, err)
		return later
	case !answer.Done:
		return e.claimed(answer.Claim, event)
	case string(answer.Result) == resultRejected:
		return rejected
	}
	return done // also if an operator, Reconcile or the handler has noted a result of its own
}

// fingerprint tells apart the deliveries of one event. It is "" if their ids are signed.
func (e *Endpoint) fingerprint(event *Event) string {
	if !e.preset.UnsignedID {
		return ""
	}
	return digest(event.DeliveryID)
}

// claimed handles an event, and notes what became of it. Only what Redis has noted is
// reported to the provider.
func (e *Endpoint) claimed(claim *idempotency.Claim, event *Event) (v verdict) {
	ctx := claim.Context()
	event.Attempt, event.Fence = claim.Attempt(), claim.Fence()
	outcome, over := idempotency.Unknown(), error(nil)
	v = later
	defer func() {
		if !e.conclude(claim, event, outcome, over) {
			v = later
		}
	}()
	ctx, release, err := e.serialized(ctx, event)
	if err != nil {
		outcome = idempotency.NothingDone()
		e.tellOf(ctx, event, err)
		return later
	}
	defer release()
	err = e.handle(ctx, event)
	over = claim.Err() // the claim is lost, or the handler has concluded it with an outcome that is not known here
	switch {
	case err == nil:
		outcome, v = idempotency.DoneWith([]byte(resultDone)), done
	case errors.Is(err, ErrRejected):
		e.tellOf(ctx, event, err)
		outcome, v = idempotency.DoneWith([]byte(resultRejected)), rejected
	default:
		e.tellOf(ctx, event, err)
	}
	if over != nil {
		e.tellOf(ctx, event, over)
		v = later
	}
	return v
}

// conclude reports whether Redis has noted the outcome. What becomes of it in the background is
// told afterwards, and a doubt is told unless over told of it.
func (e *Endpoint) conclude(claim *idempotency.Claim, event *Event, outcome idempotency.Outcome, over error) bool {
	ctx, told := claim.Context(), make(chan struct{})
	defer close(told)
	err := claim.Conclude(undo.WithDropped(ctx, func(err error) {
		<-told
		e.tellOf(ctx, event, err)
	}), outcome)
	if err == nil && over == nil && errors.Is(claim.Err(), idempotency.ErrInDoubt) {
		err = idempotency.ErrInDoubt
	}
	if err != nil {
		e.tellOf(ctx, event, err)
	}
	return err == nil
}

// stopped makes an error of a panic. Without a cause, it makes one of a goroutine that
// runtime.Goexit ended.
func stopped(cause any) error {
	if cause == nil {
		return errors.New("callback: it ended its goroutine without returning")
	}
	return fmt.Errorf("callback: it panicked: %v\n%s", cause, debug.Stack())
}

// serialized holds the lock of the event's order, if Options.Serialize is set.
func (e *Endpoint) serialized(ctx context.Context, event *Event) (context.Context, func(), error) {
	if e.opts.Serialize == nil {
		return ctx, func() {}, nil
	}
	if event.Order == "" {
		e.tellOf(ctx, event, ErrNoOrder)
		return ctx, func() {}, nil
	}
	held, err := e.opts.Serialize.Acquire(ctx, e.preset.Name+":"+event.Order)
	if err != nil {
		return ctx, nil, err
	}
	return held.Context(), func() {
		if err := held.Release(ctx); err != nil {
			e.tellOf(ctx, event, err)
		}
	}, nil
}
