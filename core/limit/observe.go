package limit

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/store"
)

// outcome is how a call ended, as Stats count it.
type outcome uint8

const (
	allowed outcome = iota
	denied
	failed
	canceled
)

// outcomes are the names of the outcomes in events.
var outcomes = [...]store.Outcome{allowed: store.Granted, denied: store.Denied, failed: store.Failed, canceled: store.Canceled}

func outcomeOf(granted bool, err error) outcome {
	switch {
	case err == nil && granted:
		return allowed
	case err == nil:
		return denied
	case ask.IsCallers(err):
		return canceled
	}
	return failed
}

// observers are told of a limiter's decisions: the limiter's own observer, and those of
// the store.
type observers struct {
	store     *store.Store // nil if the limiter is local
	own       store.Observer
	primitive store.Primitive
	name      string
}

// notify tells the observers of a decision, and of each shadow policy that would have
// denied it.
func (o *observers) notify(ctx context.Context, cost int64, d *Decision, err error, took time.Duration) {
	if o.own == nil && !o.store.Observed() {
		return
	}
	e := store.Event{
		Primitive: o.primitive, Name: o.name, Policy: d.Policy, Cost: cost,
		Outcome: outcomes[outcomeOf(d.Allowed, err)], Class: store.ClassOf(err), Duration: took,
	}
	if e.Outcome == store.Denied {
		e.Banned = d.Banned()
	}
	if d.Degraded {
		e.Class = store.ClassOf(d.Cause)
	}
	o.send(ctx, e)
	for s := range d.States() {
		if s.Shadow && !s.Allowed {
			e.Policy, e.Outcome, e.Class, e.Banned = s.Policy, store.ShadowDenied, nil, s.Banned
			o.send(ctx, e)
		}
	}
}

// notifySlot tells the observers of a decision about a request in flight.
func (o *observers) notifySlot(ctx context.Context, s *Slot, err error, took time.Duration) {
	if o.own == nil && !o.store.Observed() {
		return
	}
	e := store.Event{
		Primitive: o.primitive, Name: o.name, Policy: s.Policy, Cost: 1,
		Outcome: outcomes[outcomeOf(s.Allowed, err)], Class: store.ClassOf(err), Duration: took,
	}
	if s.Degraded {
		e.Class = store.ClassOf(s.Cause)
	}
	o.send(ctx, e)
}

func (o *observers) send(ctx context.Context, e store.Event) {
	o.own.Notify(ctx, e)
	o.store.Notify(ctx, e)
}
