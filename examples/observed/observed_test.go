package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// metrics is what the service exposes.
type metrics struct {
	*testing.T

	url string
}

// sum adds up the series of a name that have all these labels.
func (m metrics) sum(name string, having ...string) (total float64) {
	response, err := http.Get(m.url)
	if err != nil {
		m.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		m.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		labels, of := strings.CutPrefix(line, name+"{")
		for _, label := range having {
			of = of && strings.Contains(labels, label)
		}
		if !of {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			m.Fatalf("%s: got %v, want a number", line, err)
		}
		total += n
	}
	return total
}

// grows waits until such series count more than now.
func (m metrics) grows(what, name string, having ...string) {
	m.Helper()
	before := m.sum(name, having...)
	redistest.Await(m, time.Minute, what, func() bool { return m.sum(name, having...) > before })
}

// is waits until such series are a number.
func (m metrics) is(want float64, what, name string) {
	m.Helper()
	redistest.Await(m, time.Minute, what, func() bool { return m.sum(name) == want })
}

// serving runs the service on a server until the test ends, by itself or under load.
func serving(t *testing.T, srv *redistest.Server, budget time.Duration, load bool) (ctx context.Context, redis *backend.Backend, addr string) {
	t.Helper()
	redis, err := backend.Connect(t.Context(), srv.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, redis, budget, l, load, false) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with %v, want no error", err)
		}
		redis.Close()
	})
	return ctx, redis, l.Addr().String()
}

// TestAllThatIsToBeWatched shows under load, with an outage in the middle.
func TestAllThatIsToBeWatched(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	_, _, addr := serving(t, srv, 0, true)
	m := metrics{t, "http://" + addr + "/metrics"}
	m.is(1, "Redis to answer", "neap_redis_up")
	m.grows("denials by a policy", "neap_decisions_total", `outcome="denied"`, `name="api"`, `policy="burst"`)
	m.grows("decisions within a second", "neap_decision_duration_seconds_bucket", `name="api"`, `le="1"`)
	m.grows("claims that end in doubt", "neap_changes_total", `primitive="guard"`, `outcome="in_doubt"`)
	m.grows("requests that find one in doubt", "neap_decisions_total", `primitive="guard"`, `outcome="in_doubt"`)
	m.grows("results given again", "neap_decisions_total", `primitive="guard"`, `outcome="replayed"`)
	m.grows("units sold", "neap_changes_total", `primitive="stock"`, `outcome="completed"`)
	m.grows("stock that disagrees", "neap_decisions_total", `primitive="stock"`, `outcome="disagreed"`)
	m.grows("reports that another makes", "neap_decisions_total", `primitive="lock"`, `outcome="held"`)
	m.is(4, "four reports to be made", "neap_lock_active")

	lost := func() float64 { return m.sum("neap_changes_total", `primitive="lock"`, `outcome="lost"`) }
	before := lost()
	srv.Stop(t)
	m.grows("degraded decisions", "neap_decisions_total", `degraded="true"`)
	m.is(0, "Redis to be lost", "neap_redis_up")
	m.is(1, "a breaker to open", "neap_redis_held_back")
	redistest.Await(t, time.Minute, "locks to be lost", func() bool { return lost() > before })
	srv.Start(t)
	m.is(1, "Redis to be back", "neap_redis_up")
	m.is(0, "the breakers to close", "neap_redis_held_back")
	m.grows("decisions by Redis", "neap_decisions_total", `name="api"`, `degraded="false"`, `outcome="granted"`)
	m.grows("units sold again", "neap_changes_total", `primitive="stock"`, `outcome="completed"`)
}
