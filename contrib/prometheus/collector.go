package prometheus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
)

// Options are a collector's options. The zero value is ready to use; New copies it.
type Options struct {
	// Buckets are the upper bounds of the histogram of decisions, in seconds and growing; nil means 0.1 ms to 10 s.
	Buckets []float64
	// WaitBuckets are those of the histogram of waits for locks; nil means 1 ms to 5 min.
	WaitBuckets []float64
}

// Collector is a prometheus.Collector of a store. It is safe for concurrent use. The zero Collector is not usable.
type Collector struct {
	store  *store.Store
	remove func()
	events *labels.Table[series]

	decisions, shadows, changes *prometheus.CounterVec
	durations, waits            *prometheus.HistogramVec
}

// New makes a collector of everything on a store, and begins to count. It takes a go-redis client too, whose
// store [store.Of] finds. Nil opts are the zero Options. It sends nothing. For two stores in one registry, wrap the
// registry by prometheus.WrapRegistererWith, with a label that tells them apart.
//
// The error joins every fault, each with its field and the remedy.
func New(rdb script.Client, opts *Options) (*Collector, error) {
	st, unusable := store.Of(rdb)
	own := Options{Buckets: labels.DecisionBuckets(), WaitBuckets: labels.WaitBuckets()}
	if opts != nil && opts.Buckets != nil {
		own.Buckets = slices.Clone(opts.Buckets)
	}
	if opts != nil && opts.WaitBuckets != nil {
		own.WaitBuckets = slices.Clone(opts.WaitBuckets)
	}
	if err := errors.Join(unusable, check("Buckets", own.Buckets), check("WaitBuckets", own.WaitBuckets)); err != nil {
		return nil, fmt.Errorf("prometheus.New: %w", err)
	}
	c := &Collector{
		store:     st,
		decisions: counters("neap_decisions_total", "Calls that asked for permits, a slot, a lock, a run or units.", "primitive", "name", "policy", "outcome", "degraded"),
		shadows:   counters("neap_shadow_denials_total", "Requests that a shadow policy would have denied.", "name", "policy"),
		changes:   counters("neap_changes_total", "How grants ended, and servers that were lost or came back.", "primitive", "name", "outcome"),
		durations: histograms("neap_decision_duration_seconds", "How long calls took that asked for permits, a slot, a run or units.", own.Buckets, "primitive", "name", "outcome"),
		waits:     histograms("neap_lock_wait_duration_seconds", "How long callers waited for a lock.", own.WaitBuckets, "name", "outcome"),
	}
	c.events = labels.NewTable(c.series)
	c.events.Read(st)
	c.remove = sync.OnceFunc(st.Observe(c.observe))
	return c, nil
}

// check refuses what client_golang panics at.
func check(field string, bounds []float64) error {
	grow := len(bounds) > 0
	for i := 1; i < len(bounds); i++ {
		grow = grow && bounds[i-1] < bounds[i]
	}
	if grow {
		return nil
	}
	return fmt.Errorf("%s is %v: give upper bounds that grow, or nil for the default", field, bounds)
}

func counters(name, help string, by ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, by)
}

func histograms(name, help string, bounds []float64, by ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, by)
}

// Stop ends the counting. What was counted stays until the collector is unregistered. Stop may be called again.
func (c *Collector) Stop() {
	c.made()
	c.remove()
}

// made panics if New did not make it.
func (c *Collector) made() {
	if c == nil || c.remove == nil {
		panic("prometheus: a nil or zero Collector: make one with New, and check its error first")
	}
}

// series are what an event counts in.
type series struct {
	count    prometheus.Counter
	duration prometheus.Observer // nil if it has none
}

func (c *Collector) series(l labels.Labels) series {
	switch primitive := string(l.Primitive); {
	case l.Change:
		return series{count: c.changes.WithLabelValues(primitive, l.Name, l.Result())}
	case l.Shadow():
		return series{count: c.shadows.WithLabelValues(l.Name, l.Policy)}
	case l.Primitive == store.Lock:
		return series{c.decision(l), c.waits.WithLabelValues(l.Name, l.Result())}
	default:
		return series{c.decision(l), c.durations.WithLabelValues(primitive, l.Name, l.Result())}
	}
}

func (c *Collector) decision(l labels.Labels) prometheus.Counter {
	return c.decisions.WithLabelValues(string(l.Primitive), l.Name, l.Policy, l.Result(), strconv.FormatBool(l.Degraded()))
}

// observe is the store's observer.
func (c *Collector) observe(_ context.Context, e store.Event) {
	s := c.events.Of(&e)
	s.count.Inc()
	if s.duration != nil {
		s.duration.Observe(e.Duration.Seconds())
	}
}
