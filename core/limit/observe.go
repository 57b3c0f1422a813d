package limit

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/decisions"
	"github.com/neap-go/neap/core/store"
)

// observers are told of a limiter's decisions: the limiter's own observer, and those of
// the store.
type observers struct {
	store *store.Store // nil if the limiter is local
	own   store.Observer
	name  string
}

// notify tells the observers of a decision, and of each shadow policy that would have
// denied it.
func (o *observers) notify(ctx context.Context, cost int64, d *Decision, err error, took time.Duration) {
	if o.own == nil && !o.store.Observed() {
		return
	}
	e := store.Event{
		Primitive: store.Limit, Name: o.name, Policy: d.Policy, Cost: cost,
		Outcome: decisions.Of(d.Allowed, err).Event(), Class: store.ClassOf(err), Duration: took,
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

func (o *observers) send(ctx context.Context, e store.Event) {
	o.own.Notify(ctx, e)
	o.store.Notify(ctx, e)
}
