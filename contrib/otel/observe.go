package otel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
)

// scope is the name of the meter.
const scope = "github.com/neap-go/neap/contrib/otel"

// Options are the options of [Observe]. The zero value is ready to use.
type Options struct {
	// MeterProvider makes the metrics; nil means the global one. The spans are those of the callers' contexts.
	MeterProvider metric.MeterProvider
}

// Observe tells OpenTelemetry of everything on a store from now on, until stop is called; stop may be called again. It
// takes a go-redis client too, whose store [store.Of] finds. Nil opts are the zero Options. It sends nothing to Redis. Call
// it once for a store: a second one would count everything twice. The figures of several stores add up where their
// attributes are equal: neap.redis.status is 2 if two stores use one server.
//
// The error joins every fault: that rdb cannot be used, and those of the MeterProvider.
func Observe(rdb script.Client, opts *Options) (stop func(), err error) {
	st, unusable := store.Of(rdb)
	provider := otel.GetMeterProvider()
	if opts != nil && opts.MeterProvider != nil {
		provider = opts.MeterProvider
		if v := reflect.ValueOf(provider); v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, fmt.Errorf("otel.Observe: Options.MeterProvider is a nil %T: leave it out to use the global one", provider)
		}
	}
	meter := provider.Meter(scope)
	o := &observer{store: st}
	o.events = labels.NewTable(o.series)
	err = errors.Join(unusable, o.instruments(meter))
	if err == nil {
		stop, err = o.start(meter)
	}
	if err != nil {
		return nil, fmt.Errorf("otel.Observe: %w", err)
	}
	return stop, nil
}

// observer is what a store is observed by.
type observer struct {
	store  *store.Store
	events *labels.Table[series]

	decisions, waits metric.Float64Histogram
	shadows, changes metric.Int64Counter
	gauges           gauges
}

func (o *observer) instruments(m metric.Meter) error {
	var errs [5]error
	o.decisions, errs[0] = m.Float64Histogram("neap.decision.duration", metric.WithUnit("s"),
		metric.WithDescription("How long calls took that asked for permits, a slot, a run or units."),
		metric.WithExplicitBucketBoundaries(labels.DecisionBuckets()...))
	o.waits, errs[1] = m.Float64Histogram("neap.lock.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("How long callers waited for a lock."),
		metric.WithExplicitBucketBoundaries(labels.WaitBuckets()...))
	o.shadows, errs[2] = m.Int64Counter("neap.shadow_denials", metric.WithUnit("{denial}"),
		metric.WithDescription("Requests that a shadow policy would have denied."))
	o.changes, errs[3] = m.Int64Counter("neap.changes", metric.WithUnit("{change}"),
		metric.WithDescription("How grants ended, and servers that were lost or came back."))
	errs[4] = o.gauges.make(m)
	return errors.Join(errs[:]...)
}

// start begins to observe the store, and its gauges whenever they are read.
func (o *observer) start(m metric.Meter) (stop func(), err error) {
	o.events.Read(o.store)
	registered, err := m.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		o.observeGauges(ctx, to)
		return nil
	}, o.gauges.all...)
	if err != nil {
		return nil, err
	}
	remove := o.store.Observe(o.observe)
	return sync.OnceFunc(func() {
		remove()
		_ = registered.Unregister() // which fails for a registration that was undone before
	}), nil
}

// series are what an event counts in, with its attributes.
type series struct {
	duration metric.Float64Histogram // nil if count has it
	record   []metric.RecordOption
	count    metric.Int64Counter
	add      []metric.AddOption
	span     []attribute.KeyValue
}

func (o *observer) series(l labels.Labels) series {
	set := metric.WithAttributeSet(attribute.NewSet(attributes(l)...))
	s := series{record: []metric.RecordOption{set}, add: []metric.AddOption{set}}
	switch {
	case l.Change:
		s.count = o.changes
	case l.Shadow():
		s.count = o.shadows
		return s
	case l.Primitive == store.Lock:
		s.duration = o.waits
	default:
		s.duration = o.decisions
	}
	s.span = onSpan(l)
	return s
}

// attributes are those of the metrics.
func attributes(l labels.Labels) (all []attribute.KeyValue) {
	switch {
	case l.Primitive == store.Server:
		all = server(l.Name)
	case l.Name != "":
		all = append(all, attribute.String("neap.name", l.Name))
	}
	all = append(all, attribute.String("neap.primitive", string(l.Primitive)), attribute.String("neap.outcome", l.Result()))
	if l.Policy != "" {
		all = append(all, attribute.String("neap.policy", l.Policy))
	}
	if l.Class != labels.None {
		all = append(all, attribute.String("error.type", l.Class.String()))
	}
	return all
}

// server is its address, with the port apart if it is the address of one server.
func server(address string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(address)
	if n, wrong := strconv.Atoi(port); err == nil && wrong == nil {
		return []attribute.KeyValue{attribute.String("server.address", host), attribute.Int("server.port", n)}
	}
	return []attribute.KeyValue{attribute.String("server.address", address)}
}

// onSpan are the attributes of the caller's span. Each primitive has its own, since a request may ask several.
func onSpan(l labels.Labels) []attribute.KeyValue {
	of := "neap." + string(l.Primitive)
	switch {
	case l.Primitive == store.Server:
		return nil
	case l.Change:
		return []attribute.KeyValue{attribute.String(of+".change", l.Result())}
	}
	all := []attribute.KeyValue{attribute.String(of+".name", l.Name), attribute.String(of+".outcome", l.Result())}
	if l.Primitive == store.Limit || l.Primitive == store.InFlight {
		all = append(all, attribute.String(of+".policy", l.Policy), attribute.Bool(of+".degraded", l.Degraded()))
	}
	return all
}

// observe is the store's observer.
func (o *observer) observe(ctx context.Context, e store.Event) {
	s := o.events.Of(&e)
	if s.duration != nil {
		s.duration.Record(ctx, e.Duration.Seconds(), s.record...)
	} else {
		s.count.Add(ctx, 1, s.add...)
	}
	if len(s.span) == 0 {
		return
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(s.span...)
	}
}
