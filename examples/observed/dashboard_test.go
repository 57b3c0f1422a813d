package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/dashboards"
	"github.com/neap-go/neap/internal/redistest"
)

const (
	dashboardFile = "../../contrib/dashboards/neap.json"
	rulesFile     = "../../contrib/dashboards/neap.rules.yml"
)

// The alerts that clients who do what goes wrong now and then must make fire, those that only a busy machine makes fire
// before an outage, and those that an outage alone does.
var (
	byLoad   = []string{"NeapDenied", "NeapInDoubt", "NeapStockDisagrees"}
	byEither = []string{"NeapDegraded", "NeapFailed", "NeapLocksLost", "NeapSlow"}
	byOutage = []string{"NeapBreakerOpen", "NeapRedisLost"}
)

// idle are the expressions that may be 0 all the time: nobody waits in this service.
var idle = regexp.MustCompile(`neap_(limit|lock)_waiting`)

// calm is a client that asks for no more than it may.
func calm(ctx context.Context, c *crowd) {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		switch n % 4 {
		case 0:
			c.send(ctx, http.MethodGet, "/hello", "X-User", "calm")
		case 1:
			c.send(ctx, http.MethodPost, "/payments", "X-User", "calm", "Idempotency-Key", rand.Text())
		case 2:
			c.send(ctx, http.MethodPost, "/sale/"+phone, "X-User", rand.Text())
		case 3:
			if n%20 == 3 {
				go c.send(ctx, http.MethodPost, fmt.Sprint("/reports/calm-", n))
			}
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// scaled has rules look back and wait for a thirtieth of their time, so that a second is to this Prometheus what half a
// minute is to others. It has them wait for slowness of twenty times as much, as the budget of the service is twenty
// times the default: a machine that is busy with other tests is no slow Redis.
func scaled(t *testing.T, rules string) string {
	t.Helper()
	if strings.Count(rules, slow) != 1 {
		t.Fatalf("%s has %q %d times, want it once", rulesFile, slow, strings.Count(rules, slow))
	}
	rules = strings.Replace(rules, slow, "> 0.5\n", 1)
	return minutes.ReplaceAllStringFunc(rules, func(text string) string {
		m := minutes.FindStringSubmatch(text)
		n, _ := strconv.Atoi(m[2]) // digits
		return fmt.Sprint(m[1], 2*n, "s")
	})
}

const slow = "> 0.025\n"

var minutes = regexp.MustCompile(`(\[|for: )(\d+)m`)

// asGrafana replaces the variables of a panel.
var asGrafana = strings.NewReplacer("$job", ".*", "$__rate_interval", "4s")

// TestTheDashboardAndTheAlerts asks a real Prometheus for all that both ask for, of a service that is calm, then under load, then
// without Redis, and then with it again. It runs by itself, since other tests would be a load too.
//
//nolint:paralleltest // as said
func TestTheDashboardAndTheAlerts(t *testing.T) {
	for _, name := range []string{"prometheus", "promtool"} {
		redistest.NeedProgram(t, name, "apt-get install prometheus, or make prometheus")
	}
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", "--lint-fatal", rulesFile).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, said)
	}
	srv := redistest.NewStandalone(t)
	ctx, redis, addr := serving(t, srv, 20*50*time.Millisecond, false)
	sale, err := stock.New(redis.Redis, "sale", nil)
	if err != nil {
		t.Fatal(err)
	}
	clients := &crowd{url: "http://" + addr, rdb: redis.Redis, sale: sale}
	p := startPrometheus(t, addr, scaled(t, string(rules)))

	go calm(ctx, clients)
	p.seconds(1)
	began := time.Now()
	p.seconds(20)
	late := func(alert string) bool { return slices.Contains(byEither, alert) } // a busy machine may be slow
	if fired := slices.DeleteFunc(p.fired(), late); len(fired) > 0 {
		t.Fatalf("in a calm service: the alerts %q have fired, want none", fired)
	}

	go clients.play(ctx)
	p.seconds(20)
	p.fires("under load", byLoad...)
	p.seconds(5)
	for _, alert := range p.fired() {
		if slices.Contains(byOutage, alert) {
			t.Errorf("under load: the alert %s has fired, want it in the outage only", alert)
		}
	}

	srv.Stop(t)
	p.fires("in the outage", slices.Concat(byLoad, byEither, byOutage)...)
	p.seconds(8)

	srv.Start(t)
	redistest.Await(t, time.Minute, "the alerts of the outage to end", func() bool {
		return !slices.ContainsFunc(p.firing(), func(alert string) bool { return slices.Contains(byOutage, alert) })
	})
	p.seconds(10)
	p.showsAll(began)
}

// seconds waits until Prometheus has scraped the service as many times more.
func (s server) seconds(n float64) {
	s.Helper()
	scraped := func() (sum float64) {
		for _, one := range s.now(`count_over_time(neap_redis_up[1h])`) {
			sum += one.Value.value
		}
		return sum
	}
	before := scraped()
	redistest.Await(s, 2*time.Minute, fmt.Sprint(n, " scrapes"), func() bool { return scraped() >= before+n })
}

// fires waits until all of these alerts have fired.
func (s server) fires(when string, want ...string) {
	s.Helper()
	slices.Sort(want)
	var fired []string
	defer func() {
		if s.Failed() {
			s.Logf("%s: the alerts %q have fired, want %q", when, fired, want)
		}
	}()
	redistest.Await(s, time.Minute, "the alerts "+when, func() bool {
		fired = s.fired()
		return !slices.ContainsFunc(want, func(alert string) bool { return !slices.Contains(fired, alert) })
	})
}

// showsAll asks for each panel, from then to now.
func (s server) showsAll(began time.Time) {
	s.Helper()
	ended := time.Now()
	d, err := dashboards.Read(dashboardFile)
	if err != nil {
		s.Fatal(err)
	}
	for _, panel := range d.Panels {
		for _, q := range panel.Targets {
			least, most := math.Inf(1), math.Inf(-1)
			for _, one := range s.over(asGrafana.Replace(q.Expr), began, ended) {
				for _, v := range one.Values {
					if !math.IsNaN(v.value) {
						least, most = min(least, v.value), max(most, v.value)
					}
				}
			}
			switch {
			case math.IsInf(most, -1):
				s.Errorf("the panel %q shows nothing: %s", panel.Title, q.Expr)
			case most == 0 && !idle.MatchString(q.Expr):
				s.Errorf("the panel %q shows 0 all the time: %s", panel.Title, q.Expr)
			case panel.Title == "Redis answers" && (least != 0 || most != 1):
				s.Errorf("the panel %q shows %v to %v, want 0 in the outage and 1 otherwise", panel.Title, least, most)
			}
			s.Logf("%s, %s: %.3g to %.3g", panel.Title, q.LegendFormat, least, most)
		}
	}
}
