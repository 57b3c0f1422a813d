package limit

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/decisions"
	"github.com/neap-go/neap/core/store"
)

// observers are told of a limiter's decisions.
type observers struct {
	store *store.Store // nil if the limiter is local: then there are none
	name  string
}

// notify tells the observers of a decision, and of each shadow policy that would have
// denied it.
func (o *observers) notify(ctx context.Context, cost int64, d *Decision, err error, took time.Duration) {
	if !o.store.Observed() {
		return
	}
	e := store.Event{
		Primitive: store.Limit, Name: o.name, Policy: d.Policy, Cost: cost,
		Outcome: decisions.Of(d.Allowed, err).Event(), Class: store.ClassOf(err), Duration: took,
	}
	if e.Outcome == store.Denied {
		e.Banned, e.OnHold = d.Banned(), d.OnHold()
	}
	if d.Degraded {
		e.Class = store.ClassOf(d.Cause)
	}
	o.store.Notify(ctx, e)
	for s := range d.States() {
		if s.Shadow && !s.Allowed {
			e.Policy, e.Outcome, e.Class, e.Banned, e.OnHold = s.Policy, store.ShadowDenied, nil, s.Banned, s.OnHold
			o.store.Notify(ctx, e)
		}
	}
}
