package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
)

// The gauges, which are read when Prometheus asks.
var (
	active = map[store.Primitive]*prometheus.Desc{
		store.InFlight: gauge("neap_inflight_active", "Slots that this process holds.", "name"),
		store.Lock:     gauge("neap_lock_active", "Locks that this process holds.", "name"),
		store.Guard:    gauge("neap_guard_active", "Claims that this process holds.", "name"),
		store.Stock:    gauge("neap_stock_active", "Reservations that this process holds.", "name"),
	}
	waiting = map[store.Primitive]*prometheus.Desc{
		store.Limit: gauge("neap_limit_waiting", "Callers that wait for permits.", "name"),
		store.Lock:  gauge("neap_lock_waiting", "Callers that wait for a lock.", "name"),
	}
	background = gauge("neap_background_active", "Calls that this process repeats or takes back in the background, because Redis did not answer.", "primitive", "name")
	up         = gauge("neap_redis_up", "1 if the server answers, 0 during an outage.", "server")
	heldBack   = gauge("neap_redis_held_back", "1 while a breaker holds back calls to the server.", "server")
)

func gauge(name, help string, by ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, by, nil)
}

// Describe is of prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	c.made()
	for _, each := range c.counted() {
		each.Describe(to)
	}
	for _, descs := range []map[store.Primitive]*prometheus.Desc{active, waiting} {
		for _, d := range descs {
			to <- d
		}
	}
	to <- background
	to <- up
	to <- heldBack
}

// Collect is of prometheus.Collector. It sends nothing to Redis.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.made()
	gauges := c.events.Read(c.store)
	for _, g := range gauges {
		for _, e := range labels.Rare(&g) {
			c.events.Of(&e)
		}
	}
	for _, each := range c.counted() {
		each.Collect(to)
	}
	tell := func(d *prometheus.Desc, value float64, by ...string) {
		if d != nil {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, by...)
		}
	}
	for _, g := range gauges {
		if g.Primitive == store.Server {
			tell(up, number(!g.Open && !g.Lost), g.Name)
			tell(heldBack, number(g.Open), g.Name)
			continue
		}
		tell(active[g.Primitive], float64(g.Active), g.Name)
		tell(waiting[g.Primitive], float64(g.Waiting), g.Name)
		if g.Primitive != store.Limit {
			tell(background, float64(g.Background), string(g.Primitive), g.Name)
		}
	}
}

func (c *Collector) counted() []prometheus.Collector {
	return []prometheus.Collector{c.decisions, c.shadows, c.changes, c.durations, c.waits}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
