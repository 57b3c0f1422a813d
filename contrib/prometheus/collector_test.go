package prometheus_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	neapprometheus "github.com/neap-go/neap/contrib/prometheus"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
	"github.com/neap-go/neap/internal/labels/labelstest"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// exposed is a registry as Prometheus scrapes it.
type exposed struct{ registry *prometheus.Registry }

func expose(t *testing.T, c prometheus.Collector) exposed {
	t.Helper()
	e := exposed{prometheus.NewPedanticRegistry()}
	if err := e.registry.Register(c); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e exposed) text(t *testing.T) string {
	t.Helper()
	families, err := e.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// values are the numbers of the series, by their names and labels, of those that begin so.
func (e exposed) values(t *testing.T, begins ...string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for line := range strings.Lines(e.text(t)) {
		at := strings.LastIndexByte(line, ' ')
		for _, b := range begins {
			if !strings.HasPrefix(line, b) {
				continue
			}
			n, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
			if err != nil || n != math.Trunc(n) {
				t.Fatalf("%s: got %v, %v, want a whole number", line, n, err)
			}
			all[line[:at]] = int(n)
		}
	}
	return all
}

func collect(t *testing.T, st *store.Store) (*neapprometheus.Collector, exposed) {
	t.Helper()
	c, err := neapprometheus.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c, expose(t, c)
}

// gauges are the lines of what a play holds.
func gauges(server string, active, up, heldBack int) map[string]int {
	all := map[string]int{
		`neap_redis_up{server="` + server + `"}`:        up,
		`neap_redis_held_back{server="` + server + `"}`: heldBack,
		`neap_limit_waiting{name="seen"}`:               active,
		`neap_lock_waiting{name="locks"}`:               active,
	}
	for of, name := range map[string]string{"inflight": "slots", "lock": "locks", "guard": "claims", "stock": "units"} {
		all[fmt.Sprintf("neap_%s_active{name=%q}", of, name)] = active
	}
	for _, name := range []string{"local", "closed", "open"} {
		all[fmt.Sprintf("neap_limit_waiting{name=%q}", name)] = 0
	}
	return all
}

var ofGauges = []string{"neap_redis_", "neap_limit_waiting", "neap_lock_waiting", "neap_inflight_", "neap_lock_active", "neap_guard_", "neap_stock_", "neap_background_"}

// TestEveryMetric has each to the number, through an outage of a real server.
func TestEveryMetric(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	st := storetest.Open(t, srv.Unhurried(t), store.Options{})
	_, seen := collect(t, st)
	told := func(active, up, heldBack int) func() {
		return func() {
			t.Helper()
			want := gauges(srv.Addr(), active, up, heldBack)
			for of, n := range labelstest.Background(st) {
				want[fmt.Sprintf("neap_background_active{name=%q,primitive=%q}", of.Name, of.Primitive)] = n
			}
			labelstest.Compare(t, seen.values(t, ofGauges...), want)
		}
	}
	counts := labelstest.Play{Held: told(1, 1, 0), Away: told(0, 0, 1), Back: told(0, 1, 0)}.Run(t, srv, st)
	want := labelstest.Spell(counts, func(l labels.Labels) string {
		switch {
		case l.Change:
			return fmt.Sprintf("neap_changes_total{name=%q,outcome=%q,primitive=%q}", l.Name, l.Result(), l.Primitive)
		case l.Shadow():
			return fmt.Sprintf("neap_shadow_denials_total{name=%q,policy=%q}", l.Name, l.Policy)
		}
		return fmt.Sprintf("neap_decisions_total{degraded=%q,name=%q,outcome=%q,policy=%q,primitive=%q}",
			strconv.FormatBool(l.Degraded()), l.Name, l.Result(), l.Policy, l.Primitive)
	})
	labelstest.Compare(t, seen.values(t, "neap_changes_total", "neap_shadow_denials_total", "neap_decisions_total"), want)

	durations := map[string]int{}
	for l, n := range counts {
		switch {
		case l.Change || l.Shadow():
		case l.Primitive == store.Lock:
			durations[fmt.Sprintf("neap_lock_wait_duration_seconds_count{name=%q,outcome=%q}", l.Name, l.Result())] += n
		default:
			durations[fmt.Sprintf("neap_decision_duration_seconds_count{name=%q,outcome=%q,primitive=%q}", l.Name, l.Result(), l.Primitive)] += n
		}
	}
	labelstest.Compare(t, seen.values(t, "neap_lock_wait_duration_seconds_count", "neap_decision_duration_seconds_count"), durations)
	if text := seen.text(t); strings.Contains(text, labelstest.Shows) {
		t.Errorf("a subject, key, item, buyer or id is exposed:\n%s", text)
	}
}

// TestWhatIsRareIsThereBefore it happens, of what is made before or after the collector.
func TestWhatIsRareIsThereBefore(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	locker, err := lock.New(st, "l", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, seen := collect(t, st)
	guard, err := idempotency.New(st, "g", idempotency.Retry{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sale, err := stock.New(st, "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		`neap_changes_total{name="l",outcome="lost",primitive="lock"}`:                                    0,
		`neap_changes_total{name="g",outcome="in_doubt",primitive="guard"}`:                               0,
		`neap_decisions_total{degraded="false",name="g",outcome="in_doubt",policy="",primitive="guard"}`:  0,
		`neap_decisions_total{degraded="false",name="s",outcome="disagreed",policy="",primitive="stock"}`: 0,
	}
	if got := seen.values(t, "neap_changes_total", "neap_decisions_total"); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	runtime.KeepAlive([]any{locker, guard, sale}) // a store keeps none of them alive
}

// TestSeconds are the unit of the histograms, whose buckets may be given.
func TestSeconds(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	c, err := neapprometheus.New(st, &neapprometheus.Options{Buckets: []float64{0.25, 1}, WaitBuckets: []float64{2, 4}})
	if err != nil {
		t.Fatal(err)
	}
	seen := expose(t, c)
	st.Notify(t.Context(), store.Event{Primitive: store.Guard, Name: "g", Outcome: store.Granted, Duration: 500 * time.Millisecond})
	st.Notify(t.Context(), store.Event{Primitive: store.Lock, Name: "l", Outcome: store.Held, Duration: 3 * time.Second})
	text := seen.text(t)
	for _, want := range []string{
		`neap_decision_duration_seconds_bucket{name="g",outcome="granted",primitive="guard",le="0.25"} 0`,
		`neap_decision_duration_seconds_bucket{name="g",outcome="granted",primitive="guard",le="1"} 1`,
		`neap_decision_duration_seconds_sum{name="g",outcome="granted",primitive="guard"} 0.5`,
		`neap_lock_wait_duration_seconds_bucket{name="l",outcome="held",le="2"} 0`,
		`neap_lock_wait_duration_seconds_bucket{name="l",outcome="held",le="4"} 1`,
		`neap_lock_wait_duration_seconds_sum{name="l",outcome="held"} 3`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("got no line %s in\n%s", want, text)
		}
	}
}

// TestDefaultBuckets tell what the alert NeapSlow and the default budget ask for: decisions of more than 25 ms and 50 ms.
func TestDefaultBuckets(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	_, seen := collect(t, st)
	st.Notify(t.Context(), store.Event{Primitive: store.Limit, Name: "l", Outcome: store.Granted, Duration: 30 * time.Millisecond})
	st.Notify(t.Context(), store.Event{Primitive: store.Lock, Name: "l", Outcome: store.Granted, Duration: 2 * time.Minute})
	text := seen.text(t)
	for _, want := range []string{
		`neap_decision_duration_seconds_bucket{name="l",outcome="granted",primitive="limit",le="0.0001"} 0`,
		`neap_decision_duration_seconds_bucket{name="l",outcome="granted",primitive="limit",le="0.025"} 0`,
		`neap_decision_duration_seconds_bucket{name="l",outcome="granted",primitive="limit",le="0.05"} 1`,
		`neap_decision_duration_seconds_bucket{name="l",outcome="granted",primitive="limit",le="10"} 1`,
		`neap_lock_wait_duration_seconds_bucket{name="l",outcome="granted",le="0.001"} 0`,
		`neap_lock_wait_duration_seconds_bucket{name="l",outcome="granted",le="60"} 0`,
		`neap_lock_wait_duration_seconds_bucket{name="l",outcome="granted",le="300"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("got no line %s in\n%s", want, text)
		}
	}
}

// TestTenThousandPlans have a bounded number of series, and are all counted.
func TestTenThousandPlans(t *testing.T) {
	t.Parallel()
	const plans = 10_000
	st := storetest.Open(t, redistest.Embedded(), store.Options{Budget: time.Minute})
	_, seen := collect(t, st)
	l, err := limit.New(st, "plans", []limit.Policy{limit.FixedWindow{Name: "own", Limit: 1, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed})
	if err != nil {
		t.Fatal(err)
	}
	before := len(seen.values(t, "neap_decisions_total", "neap_decision_duration_seconds"))
	for n := range plans {
		plan, err := l.With(limit.FixedWindow{Limit: int64(n) + 1, Window: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.TakeN(t.Context(), "s", 0); err != nil {
			t.Fatal(err)
		}
	}
	counts := seen.values(t, "neap_decisions_total")
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if len(counts) != labels.MostPolicies+1 || sum != plans {
		t.Errorf("got %d series of %d decisions, want %d of %d", len(counts), sum, labels.MostPolicies+1, plans)
	}
	if got := len(seen.values(t, "neap_decision_duration_seconds_count")); before != 0 || got != 1 {
		t.Errorf("got %d series before, and %d histograms, want none and 1", before, got)
	}
}

// TestThousandsOfNames have a bounded number of series, and are all counted. Each limiter has a policy of its own.
func TestThousandsOfNames(t *testing.T) {
	t.Parallel()
	const limiters = 4000
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	_, seen := collect(t, st)
	var all []*limit.Limiter
	for n := range limiters {
		l, err := limit.New(st, fmt.Sprint("tenant", n), []limit.Policy{limit.FixedWindow{Limit: int64(100 + n), Window: time.Hour}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	if waiting := len(seen.values(t, "neap_limit_waiting")); waiting != labels.MostNames+1 {
		t.Errorf("got %d gauges of limiters, want %d", waiting, labels.MostNames+1)
	}
	for n, l := range all {
		st.Notify(t.Context(), store.Event{Primitive: store.Limit, Name: l.Name(), Policy: fmt.Sprintf("window-%d-1h", 100+n), Outcome: store.Granted})
	}
	counts := seen.values(t, "neap_decisions_total")
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if most := labels.MostNames + labels.MostPolicies + 1; len(counts) != most || sum != limiters {
		t.Errorf("got %d series of %d decisions, want %d of %d", len(counts), sum, most, limiters)
	}
}

// TestStopEnds the counting, once for all, and what was counted stays.
func TestStopEnds(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	c, seen := collect(t, st)
	const line = `neap_decisions_total{degraded="false",name="n",outcome="granted",policy="",primitive="lock"}`
	for range 2 {
		st.Notify(t.Context(), store.Event{Primitive: store.Lock, Name: "n", Outcome: store.Granted})
		if got := seen.values(t, line)[line]; got != 1 {
			t.Errorf("got %d decisions, want 1", got)
		}
		c.Stop()
		if st.Observed() {
			t.Error("after Stop: the store has an observer, want none")
		}
	}
}

// TestTwoStores have their series beside each other.
func TestTwoStores(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"a", "b"} {
		st := storetest.Open(t, redistest.Embedded(), store.Options{})
		c, err := neapprometheus.New(st, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := prometheus.WrapRegistererWith(prometheus.Labels{"store": name}, registry).Register(c); err != nil {
			t.Error(err)
		}
		st.Notify(t.Context(), store.Event{Primitive: store.Lock, Name: "n", Outcome: store.Granted})
	}
	got := exposed{registry}.values(t, "neap_decisions_total")
	if len(got) != 2 {
		t.Errorf("got %v, want a series for each store", got)
	}
}

// TestFaults are told together, each with its field.
func TestFaults(t *testing.T) {
	t.Parallel()
	_, err := neapprometheus.New(nil, &neapprometheus.Options{Buckets: []float64{}, WaitBuckets: []float64{2, 2}})
	for _, part := range []string{"prometheus.New: ", "rdb", "Buckets is []", "WaitBuckets is [2 2]"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got the error %v, want %q in it", err, part)
		}
	}
	for name, call := range map[string]func(*neapprometheus.Collector){
		"Stop": (*neapprometheus.Collector).Stop, "Describe": func(c *neapprometheus.Collector) { c.Describe(nil) }, "Collect": func(c *neapprometheus.Collector) { c.Collect(nil) },
	} {
		for _, c := range []*neapprometheus.Collector{nil, {}} {
			func() {
				defer func() {
					if text := fmt.Sprint(recover()); !strings.Contains(text, "nil or zero Collector") {
						t.Errorf("%s of %v: got the panic %s, want that it was not made", name, c, text)
					}
				}()
				call(c)
			}()
		}
	}
}

// TestAnEventNoAllocations: what was seen before costs no memory.
func TestAnEventNoAllocations(t *testing.T) {
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	collect(t, st)
	labelstest.NoAllocations(t, st)
}

// BenchmarkEvent is what a decision costs more because of the collector.
func BenchmarkEvent(b *testing.B) {
	st := storetest.Open(b, redistest.Embedded(), store.Options{})
	c, err := neapprometheus.New(st, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Stop()
	e := store.Event{Primitive: store.Limit, Name: "api", Policy: "burst", Outcome: store.Granted, Duration: time.Millisecond}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			st.Notify(context.Background(), e)
		}
	})
}
