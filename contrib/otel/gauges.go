package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
)

// gauges are read when the metrics are.
type gauges struct {
	active, waiting              map[store.Primitive]metric.Int64ObservableUpDownCounter
	background, status, heldBack metric.Int64ObservableUpDownCounter
	all                          []metric.Observable
}

func (g *gauges) make(m metric.Meter) error {
	var faults []error
	gauge := func(name, unit, help string) metric.Int64ObservableUpDownCounter {
		made, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
		faults, g.all = append(faults, err), append(g.all, made)
		return made
	}
	g.active = map[store.Primitive]metric.Int64ObservableUpDownCounter{
		store.InFlight: gauge("neap.inflight.active", "{slot}", "Slots that this process holds."),
		store.Lock:     gauge("neap.lock.active", "{lock}", "Locks that this process holds."),
		store.Guard:    gauge("neap.guard.active", "{claim}", "Claims that this process holds."),
		store.Stock:    gauge("neap.stock.active", "{reservation}", "Reservations that this process holds."),
	}
	g.waiting = map[store.Primitive]metric.Int64ObservableUpDownCounter{
		store.Limit: gauge("neap.limit.waiting", "{caller}", "Callers that wait for permits."),
		store.Lock:  gauge("neap.lock.waiting", "{caller}", "Callers that wait for a lock."),
	}
	g.background = gauge("neap.background.active", "{call}", "Calls that this process repeats or takes back in the background, because Redis did not answer.")
	g.status = gauge("neap.redis.status", "1", "1 if the server answers, 0 during an outage.")
	g.heldBack = gauge("neap.redis.held_back", "1", "1 while a breaker holds back calls to the server.")
	return errors.Join(faults...)
}

func (o *observer) observeGauges(ctx context.Context, to metric.Observer) {
	tell := func(of metric.Int64ObservableUpDownCounter, n int64, by ...attribute.KeyValue) {
		if of != nil {
			to.ObserveInt64(of, n, metric.WithAttributes(by...))
		}
	}
	for _, g := range o.events.Read(o.store) {
		for _, e := range labels.Rare(&g) {
			if s := o.events.Of(&e); s.count != nil { // a histogram has no zero
				s.count.Add(ctx, 0, s.add...)
			}
		}
		if g.Primitive == store.Server {
			at := server(g.Name)
			tell(o.gauges.status, number(!g.Open && !g.Lost), at...)
			tell(o.gauges.heldBack, number(g.Open), at...)
			continue
		}
		name := attribute.String("neap.name", g.Name)
		tell(o.gauges.active[g.Primitive], int64(g.Active), name)
		tell(o.gauges.waiting[g.Primitive], int64(g.Waiting), name)
		if g.Primitive != store.Limit {
			tell(o.gauges.background, int64(g.Background), name, attribute.String("neap.primitive", string(g.Primitive)))
		}
	}
}

func number(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
