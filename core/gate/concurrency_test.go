package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// inFlight allows n requests at once.
func inFlight(t testing.TB, n int64) *inflight.Limiter {
	t.Helper()
	c, err := inflight.NewLocal("test", n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// without is a limit of 1 whose Redis refuses everything.
func without(t testing.TB, mode store.FailMode) *inflight.Limiter {
	t.Helper()
	c, err := inflight.New(deadRedis{errNoPerm}, "test", 1, &inflight.Options{Budget: time.Minute, Fail: mode})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConcurrencyHoldsASlotUntilLeave(t *testing.T) {
	t.Parallel()
	c := inFlight(t, 2)
	g := gate.Concurrency(c, gate.ByHeader("X-Api-Key"), nil)
	a := with("X-Api-Key", "a")
	first, second := g.Enter(a), g.Enter(a)
	if status(first) != 200 || status(second) != 200 || first.Capture != 0 {
		t.Fatalf("got the passes %+v and %+v, want both admitted and nothing captured", first, second)
	}
	full := g.Enter(a)
	const body = `{"title":"Too many requests are in flight","status":429,"detail":"Retry after 1 s."}` + "\n"
	if status(full) != 429 || string(full.Reply.Body) != body || full.Leave != nil {
		t.Errorf("the third in flight: got %+v, want 429 with the body %q and no Leave", full.Reply, body)
	}
	if h := full.Reply.Header; single(t, h, "Retry-After") != "1" || single(t, h, "Cache-Control") != "no-store" || len(h) != 5 {
		t.Errorf("got the fields %+v, want five, with Retry-After: 1 and Cache-Control: no-store", h)
	}
	if got := status(g.Enter(with("X-Api-Key", "b"))); got != 200 {
		t.Errorf("another key: got %d, want 200", got)
	}
	first.Leave(nil)
	first.Leave(nil)
	if c.Stats().InFlight != 2 || status(g.Enter(a)) != 200 || status(g.Enter(a)) != 429 {
		t.Errorf("after one has left: got stats %+v, want one more admitted, and no more than one", c.Stats())
	}
}

func TestConcurrencyAnswers(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom secret-key-name")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	ok := with("X-Api-Key", "k")
	key := gate.ByHeader("X-Api-Key")
	for _, c := range []struct {
		name   string
		limit  *inflight.Limiter
		key    gate.Key
		r      *request
		status int
		hook   error // nil: not told
	}{
		{"admitted", inFlight(t, 1), key, ok, 200, nil},
		{"missing", inFlight(t, 1), key, &request{}, 400, nil},
		{"the key fails", inFlight(t, 1), failing(boom), ok, 500, boom},
		{"Redis is down, closed", without(t, store.FailClosed), key, ok, 503, script.ErrConfiguration},
		{"Redis is down, open", without(t, store.FailOpen), key, ok, 200, script.ErrConfiguration},
		{"Redis is down, local", without(t, store.FailLocal), key, ok, 200, script.ErrConfiguration},
		{"the client went away", inFlight(t, 1), key, &request{ctx: gone, header: ok.header}, 503, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var h hook
			p := gate.Concurrency(c.limit, c.key, &gate.ConcurrencyOptions{OnError: h.hear}).Enter(c.r)
			if status(p) != c.status {
				t.Errorf("got %d, want %d", status(p), c.status)
			}
			if told := h.take(); (told == nil) != (c.hook == nil) || c.hook != nil && !errors.Is(told, c.hook) {
				t.Errorf("the hook was told %v, want %v", told, c.hook)
			}
			if p.Reply == nil {
				p.Leave(nil)
			} else if strings.Contains(string(p.Reply.Body), "secret-key-name") {
				t.Errorf("the client reads %s, want nothing of the error's text", p.Reply.Body)
			}
			if c.limit.Stats().InFlight != 0 {
				t.Errorf("got stats %+v, want nothing in flight", c.limit.Stats())
			}
		})
	}
}

func TestConcurrencyOptions(t *testing.T) {
	t.Parallel()
	c := inFlight(t, 1)
	opts := &gate.ConcurrencyOptions{
		Skip: func(r gate.Request) bool { return r.Path() == "/healthz" },
		Render: func(d gate.Denial) gate.Reply {
			if d.Decision == nil || d.Decision.Policy != "inflight" || d.Decision.Limit != 1 || d.RetryAfter != time.Second {
				t.Errorf("got the denial %+v by %+v, want one by inflight of limit 1, to retry after 1 s",
					d, d.Decision)
			}
			return gate.Reply{Body: []byte("busy")}
		},
	}
	g := gate.Concurrency(c, everyone, opts)
	opts.Skip, opts.Render = nil, nil
	if p := g.Enter(&request{path: "/"}); status(p) != 200 {
		t.Errorf("the first request: got %+v, want it admitted", p.Reply)
	}
	if p := g.Enter(&request{path: "/healthz"}); p.Reply != nil || p.Leave != nil {
		t.Errorf("a skipped request: got %+v, want neither a reply nor a Leave", p)
	}
	p := g.Enter(&request{path: "/"})
	if status(p) != 429 || string(p.Reply.Body) != "busy" || single(t, p.Reply.Header, "Retry-After") != "1" {
		t.Errorf("the second request: got %+v, want 429 with the body busy and Retry-After: 1", p.Reply)
	}
}

// No slot stays taken if a later gate refuses or panics, or if a hook panics.
func TestConcurrencyFreesSlotsOfRequestsThatDidNotRun(t *testing.T) {
	t.Parallel()
	c := inFlight(t, 1)
	held := gate.Concurrency(c, everyone, nil)
	if p := gate.Chain(held, gate.RateLimit(hourly(t, 1), failing(gate.Refuse(403, "No")), nil)).Enter(&request{}); status(p) != 403 {
		t.Errorf("got %+v, want 403 of the inner gate", p.Reply)
	}
	panics(t, func() {
		gate.Chain(held, gate.RateLimit(hourly(t, 1), func(gate.Request) (string, error) { panic("mine") }, nil)).Enter(&request{})
	})
	if c.Stats().InFlight != 0 {
		t.Errorf("after a refusal and a panic inside: got stats %+v, want nothing in flight", c.Stats())
	}
	down := without(t, store.FailLocal)
	panics(t, func() {
		gate.Concurrency(down, everyone, &gate.ConcurrencyOptions{OnError: func(gate.Request, error) { panic("mine") }}).Enter(&request{})
	})
	if down.Stats().InFlight != 0 {
		t.Errorf("after a panic of the hook: got stats %+v, want nothing in flight", down.Stats())
	}
}

// The slot is given back in Redis although the request's context has ended.
func TestConcurrencyReleasesForAClientThatIsGone(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { rdb.Close() })
	c, err := inflight.New(rdb, "test", 1, &inflight.Options{Budget: time.Minute, Fail: store.FailClosed})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := gate.Concurrency(c, everyone, nil).Enter(&request{ctx: ctx})
	if n, err := c.InFlight(context.Background(), "everyone"); n != 1 || err != nil {
		t.Errorf("got %d in flight, %v, want 1", n, err)
	}
	cancel()
	p.Leave(nil)
	if keys := m.Keys(); len(keys) != 0 {
		t.Errorf("after Leave: got the keys %v, want none", keys)
	}
}

func TestConcurrencyPanics(t *testing.T) {
	t.Parallel()
	for name, wire := range map[string]func(){
		"no limit": func() { gate.Concurrency(nil, everyone, nil) },
		"no key":   func() { gate.Concurrency(inFlight(t, 1), nil, nil) },
	} {
		if v, ok := panics(t, wire).(string); !ok || !strings.HasPrefix(v, "gate.Concurrency: ") {
			t.Errorf("%s: got the panic %v, want one that begins with gate.Concurrency", name, v)
		}
	}
}

// The unit of the quota is not requests, and there is no window.
func TestConcurrencyFields(t *testing.T) {
	t.Parallel()
	for headers, want := range map[gate.Headers][]gate.Field{
		gate.HeadersIETF: {
			{Name: "Ratelimit-Policy", Value: `"inflight";q=2;qu="concurrent-requests"`, Add: true},
			{Name: "Ratelimit", Value: `"inflight";r=1`, Add: true},
		},
		gate.HeadersNone: nil,
	} {
		g := gate.Concurrency(inFlight(t, 2), everyone, &gate.ConcurrencyOptions{Headers: headers})
		p := g.Enter(&request{})
		if !slices.Equal(p.Header, want) {
			t.Errorf("Headers %d: got the fields %+v, want %+v", headers, p.Header, want)
		}
		g.Enter(&request{})
		full := g.Enter(&request{})
		if got := lines(full.Reply.Header, "Ratelimit"); (len(got) == 1) != (want != nil) || want != nil && got[0] != `"inflight";r=0` {
			t.Errorf("Headers %d: a denial has Ratelimit %q, "+
				"want one line \"inflight\";r=0 with HeadersIETF, and none with HeadersNone", headers, got)
		}
	}
	for _, headers := range []gate.Headers{gate.HeadersLegacy, gate.HeadersX, 9} {
		text, _ := panics(t, func() {
			gate.Concurrency(inFlight(t, 2), everyone, &gate.ConcurrencyOptions{Headers: headers})
		}).(string)
		if !strings.Contains(text, "ConcurrencyOptions.Headers") {
			t.Errorf("Headers %d: got %q, want a panic that names the option", headers, text)
		}
	}
	open := gate.Concurrency(without(t, store.FailOpen), everyone, nil).Enter(&request{})
	if open.Reply != nil || open.Header != nil {
		t.Errorf("open, without Redis: got %+v, want neither a reply nor fields", open)
	}
}
