package otel_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	neapotel "github.com/neap-go/neap/contrib/otel"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
	"github.com/neap-go/neap/internal/labels/labelstest"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// told is what OpenTelemetry was told.
type told struct{ reader *metric.ManualReader }

func observe(tb testing.TB, st *store.Store) (all told, stop func()) {
	tb.Helper()
	all = told{metric.NewManualReader()}
	stop, err := neapotel.Observe(st, &neapotel.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(all.reader))})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stop)
	return all, stop
}

// values are the numbers of the series, by their names and sorted attributes, of those that begin so. That of a histogram is how
// many were recorded. An error.type of a kind that a play may meet is written as a star.
func (all told) values(tb testing.TB, begins ...string) map[string]int {
	tb.Helper()
	var read metricdata.ResourceMetrics
	if err := all.reader.Collect(context.Background(), &read); err != nil {
		tb.Fatal(err)
	}
	got := map[string]int{}
	for _, scope := range read.ScopeMetrics {
		for _, m := range scope.Metrics {
			if !slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(m.Name, b) }) {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					got[spelled(m.Name, p.Attributes)] += int(p.Count)
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					got[spelled(m.Name, p.Attributes)] += int(p.Value)
				}
			default:
				tb.Fatalf("%s: got data of the type %T", m.Name, data)
			}
		}
	}
	return got
}

func spelled(name string, attributes attribute.Set) string {
	var parts []string
	for _, a := range attributes.ToSlice() {
		value := a.Value.String()
		if a.Key == "error.type" && value != "_OTHER" {
			value = "*"
		}
		parts = append(parts, string(a.Key)+"="+value)
	}
	return name + " " + strings.Join(parts, " ")
}

// spell is what labels are told as.
func spell(l labels.Labels) string {
	var parts []string
	if l.Class != labels.None {
		parts = append(parts, "error.type=*")
	}
	if l.Primitive != store.Server {
		parts = append(parts, "neap.name="+l.Name)
	}
	parts = append(parts, "neap.outcome="+l.Result())
	if l.Policy != "" {
		parts = append(parts, "neap.policy="+l.Policy)
	}
	parts = append(parts, "neap.primitive="+string(l.Primitive))
	if l.Primitive == store.Server {
		host, port, _ := strings.Cut(l.Name, ":")
		parts = append(parts, "server.address="+host, "server.port="+port)
	}
	name := "neap.decision.duration"
	switch {
	case l.Change:
		name = "neap.changes"
	case l.Shadow():
		name = "neap.shadow_denials"
	case l.Primitive == store.Lock:
		name = "neap.lock.wait.duration"
	}
	return name + " " + strings.Join(parts, " ")
}

// gauges are what is told while a play holds one of each, or none.
func gauges(server string, active, status, heldBack int) map[string]int {
	host, port, _ := strings.Cut(server, ":")
	at := " server.address=" + host + " server.port=" + port
	all := map[string]int{
		"neap.redis.status" + at: status, "neap.redis.held_back" + at: heldBack,
		"neap.limit.waiting neap.name=seen": active, "neap.lock.waiting neap.name=locks": active,
		"neap.limit.waiting neap.name=local": 0, "neap.limit.waiting neap.name=closed": 0, "neap.limit.waiting neap.name=open": 0,
		"neap.inflight.active neap.name=slots": active, "neap.lock.active neap.name=locks": active,
		"neap.guard.active neap.name=claims": active, "neap.stock.active neap.name=units": active,
	}
	return all
}

var ofGauges = []string{"neap.redis.", "neap.limit.waiting", "neap.lock.waiting", "neap.inflight.active", "neap.lock.active", "neap.guard.active", "neap.stock.active", "neap.background."}

// TestEveryMetric has each to the number, through an outage of a real server.
func TestEveryMetric(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	st := storetest.Open(t, srv.Unhurried(t), store.Options{})
	all, _ := observe(t, st)
	are := func(active, status, heldBack int) func() {
		return func() {
			t.Helper()
			want := gauges(srv.Addr(), active, status, heldBack)
			for of, n := range labelstest.Background(st) {
				want["neap.background.active neap.name="+of.Name+" neap.primitive="+string(of.Primitive)] = n
			}
			labelstest.Compare(t, all.values(t, ofGauges...), want)
		}
	}
	counts := labelstest.Play{Held: are(1, 1, 0), Away: are(0, 0, 1), Back: are(0, 1, 0)}.Run(t, srv, st)
	labelstest.Compare(t, all.values(t, "neap.decision", "neap.lock.wait.", "neap.shadow_denials", "neap.changes"), labelstest.Spell(counts, spell))
	for of := range all.values(t, "") {
		if strings.Contains(of, labelstest.Shows) {
			t.Errorf("%s: a subject, key, item, buyer or id is told", of)
		}
	}
}

// TestErrorTypes are those of the classes, of an event that was answered none.
func TestErrorTypes(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	all, _ := observe(t, st)
	st.Notify(t.Context(), store.Event{Primitive: store.Lock, Name: "n", Outcome: store.Failed}) // it came too late
	st.Notify(t.Context(), store.Event{Primitive: store.Lock, Name: "n", Outcome: store.Granted})
	labelstest.Compare(t, all.values(t, "neap.lock.wait"), map[string]int{
		"neap.lock.wait.duration error.type=_OTHER neap.name=n neap.outcome=failed neap.primitive=lock": 1,
		"neap.lock.wait.duration neap.name=n neap.outcome=granted neap.primitive=lock":                  1,
	})
}

// TestSeconds are the unit of the histograms.
func TestSeconds(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	all, _ := observe(t, st)
	st.Notify(t.Context(), store.Event{Primitive: store.Guard, Name: "g", Outcome: store.Granted, Duration: 500 * time.Millisecond})
	st.Notify(t.Context(), store.Event{Primitive: store.Lock, Name: "l", Outcome: store.Held, Duration: 500 * time.Millisecond})
	var read metricdata.ResourceMetrics
	if err := all.reader.Collect(t.Context(), &read); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range read.ScopeMetrics[0].Metrics {
		data, is := m.Data.(metricdata.Histogram[float64])
		if !is {
			continue
		}
		found++
		if p := data.DataPoints[0]; m.Unit != "s" || p.Sum != 0.5 || p.Bounds[0] > 0.001 {
			t.Errorf("%s: got %v %s and the bounds %v, want 0.5 s and bounds from a millisecond on", m.Name, p.Sum, m.Unit, p.Bounds)
		}
	}
	if found != 2 {
		t.Errorf("got %d histograms, want 2", found)
	}
}

// TestSpans have the attributes of what was decided for them: of each primitive the last, and of no key.
func TestSpans(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{Budget: time.Minute})
	observe(t, st)
	limiter, err := limit.New(st, "api", []limit.Policy{limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	locker, err := lock.New(st, "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	recorder := tracetest.NewSpanRecorder()
	ctx, span := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "request")
	for range 2 {
		if _, err := limiter.Take(ctx, labelstest.Hostile); err != nil {
			t.Fatal(err)
		}
	}
	held, err := locker.Try(ctx, labelstest.Hostile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locker.ForceRelease(ctx, labelstest.Hostile); err != nil {
		t.Fatal(err)
	}
	_ = held.Release(ctx) // it is lost
	span.End()
	ended := recorder.Ended()
	if len(ended) != 1 || len(ended[0].Events()) != 0 {
		t.Fatalf("got %d spans, want that of the request alone, without events", len(ended))
	}
	got := map[string]string{}
	for _, a := range ended[0].Attributes() {
		got[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{
		"neap.limit.name": "api", "neap.limit.policy": "hourly", "neap.limit.outcome": "denied", "neap.limit.degraded": "false",
		"neap.lock.name": "orders", "neap.lock.outcome": "granted", "neap.lock.change": "lost",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got the attributes %v, want %v", got, want)
	}
}

// TestTenThousandPlans have a bounded number of series, and are all counted.
func TestTenThousandPlans(t *testing.T) {
	t.Parallel()
	const plans = 10_000
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	all, _ := observe(t, st)
	for n := range plans {
		st.Notify(t.Context(), store.Event{Primitive: store.Limit, Name: "plans", Policy: fmt.Sprint("window-", n, "-1h"), Outcome: store.Granted})
	}
	got, sum := all.values(t, "neap.decision.duration"), 0
	for _, n := range got {
		sum += n
	}
	if len(got) != labels.MostPolicies+1 || sum != plans {
		t.Errorf("got %d series of %d decisions, want %d of %d", len(got), sum, labels.MostPolicies+1, plans)
	}
}

// TestStopEnds what is told, once for all.
func TestStopEnds(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	locker, err := lock.New(st, "n", nil)
	if err != nil {
		t.Fatal(err)
	}
	all, stop := observe(t, st)
	if got := all.values(t, "neap.lock.active"); len(got) != 1 {
		t.Errorf("got %v, want a gauge of the locker", got)
	}
	for range 2 {
		stop()
		if st.Observed() {
			t.Error("after stop: the store has an observer, want none")
		}
		if got := all.values(t, ofGauges...); len(got) != 0 {
			t.Errorf("after stop: got %v, want no gauge", got)
		}
	}
	_ = locker.Name()
}

// TestRareChangesAreZeroBeforeTheyHappen, so that the first one is an increase.
func TestRareChangesAreZeroBeforeTheyHappen(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	locker, err := lock.New(st, "n", nil)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := observe(t, st)
	guard, err := idempotency.New(st, "n", idempotency.Retry{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all.values(t, "")
	want := map[string]int{
		"neap.changes neap.name=n neap.outcome=lost neap.primitive=lock":      0,
		"neap.changes neap.name=n neap.outcome=in_doubt neap.primitive=guard": 0,
	}
	if got := all.values(t, "neap.changes"); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	_, _ = locker.Name(), guard.Name()
}

// TestFaults are told, and nothing is observed then.
func TestFaults(t *testing.T) {
	t.Parallel()
	for names, observe := range map[string]func() (func(), error){
		"rdb": func() (func(), error) { return neapotel.Observe(nil, nil) },
		"Options.MeterProvider": func() (func(), error) {
			return neapotel.Observe(redistest.Embedded(), &neapotel.Options{MeterProvider: (*metric.MeterProvider)(nil)})
		},
	} {
		stop, err := observe()
		if stop != nil || err == nil || !strings.HasPrefix(err.Error(), "otel.Observe: ") || !strings.Contains(err.Error(), names) {
			t.Errorf("got the error %v, want one about %s", err, names)
		}
	}
}

// TestAnEventNoAllocations: what was seen before costs no memory.
func TestAnEventNoAllocations(t *testing.T) {
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	observe(t, st)
	labelstest.NoAllocations(t, st)
}

// BenchmarkEvent is what a decision costs more because of the metrics, without a span that records.
func BenchmarkEvent(b *testing.B) {
	st := storetest.Open(b, redistest.Embedded(), store.Options{})
	observe(b, st)
	e := store.Event{Primitive: store.Limit, Name: "api", Policy: "burst", Outcome: store.Granted, Duration: time.Millisecond}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			st.Notify(context.Background(), e)
		}
	})
}
