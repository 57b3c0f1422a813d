package gatetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/inflight"
)

// atOnce is a limit on requests in flight, in process.
func atOnce(t testing.TB, n int64) *inflight.Limiter {
	t.Helper()
	c, err := inflight.NewLocal("at-once", n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// freed waits until no request is in flight.
func freed(t testing.TB, c *inflight.Limiter) {
	t.Helper()
	await(t, "every slot to be free", func() bool { return c.Stats().InFlight == 0 })
}

// inFlight holds as many requests as may run. One more is refused until one of them has
// ended.
func inFlight(t *testing.T, d Driver) {
	const most = 3
	c := atOnce(t, most)
	running, finish := make(chan struct{}, 16), make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	defer end() // or a server with a bug would wait for ever
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/slow", Gates: []gate.Gate{gate.Concurrency(c, gate.ByIP(nil), nil)},
		Handler: func(x Exchange) error {
			running <- struct{}{}
			<-finish
			return say(200, "done")(x)
		},
	}}})
	held := make([]*client, most)
	for i := range held {
		held[i] = dial(t, address)
		if err := held[i].write("GET", "/slow", ""); err != nil {
			t.Fatal(err)
		}
		next(t, "the handler to run", running)
	}
	const problem = `{"title":"Too many requests are in flight","status":429,"detail":"Retry after 1 s."}` + "\n"
	for range 2 {
		get(t, address, "/slow").is(t, 429, problem,
			"Cache-Control: no-store", "Content-Type: application/problem+json", "Retry-After: 1",
			inFlightPolicy(most), `Ratelimit: "inflight";r=0`)
	}
	end()
	for i, h := range held {
		a, err := h.read("GET")
		if err != nil {
			t.Fatal(err)
		}
		a.is(t, 200, "done", "Content-Type: "+plain, inFlightPolicy(most), fmt.Sprintf(`Ratelimit: "inflight";r=%d`, most-i-1))
	}
	if n := c.Stats().InFlight; n != 0 {
		t.Errorf("when all responses had ended, %d were in flight, want 0", n)
	}
	one := dial(t, address)
	for range 2 * most {
		one.do("GET", "/slow").is(t, 200, "done", "Content-Type: "+plain, inFlightPolicy(most), `Ratelimit: "inflight";r=2`)
	}
}

// inFlightPolicy is the header field that says that the quota is requests in flight.
func inFlightPolicy(most int) string {
	return fmt.Sprintf(`Ratelimit-Policy: "inflight";q=%d;qu="concurrent-requests"`, most)
}

// inFlightPanics: the slot of a handler that panics is given back.
func inFlightPanics(t *testing.T, d Driver) {
	c := atOnce(t, 1)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/slow", Gates: []gate.Gate{gate.Concurrency(c, gate.ByIP(nil), nil)},
		Handler: func(Exchange) error { panic("gatetest: a handler panics") },
	}}})
	for range 3 {
		if a, err := dial(t, address).try("GET", "/slow", ""); err != nil || a.status != 500 || a.body != Recovered {
			t.Errorf("got %d %q, %v, want 500 %q", a.status, a.body, err, Recovered)
		}
		freed(t, c)
	}
}

// inFlightGone: a request is in flight as long as its handler runs, and no longer,
// whether its client is gone or not.
func inFlightGone(t *testing.T, d Driver) {
	c := atOnce(t, 1)
	running, finish := make(chan struct{}, 16), make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	defer end() // or a server with a bug would wait for ever
	var slow atomic.Bool
	slow.Store(true)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/slow", Gates: []gate.Gate{gate.Concurrency(c, gate.ByIP(nil), nil)},
		Handler: func(x Exchange) error {
			running <- struct{}{}
			if slow.Load() {
				if d.Disconnect {
					<-x.Context().Done()
				}
				<-finish
			}
			return say(200, "done")(x)
		},
	}}})
	gone := dial(t, address)
	if err := gone.write("GET", "/slow", ""); err != nil {
		t.Fatal(err)
	}
	next(t, "the handler to run", running)
	_ = gone.conn.Close()
	if a := get(t, address, "/slow"); a.status != 429 {
		t.Errorf("while the handler still ran, another request got %d, want 429", a.status)
	}
	slow.Store(false)
	end()
	freed(t, c)
	get(t, address, "/slow").is(t, 200, "done", "Content-Type: "+plain, inFlightPolicy(1), `Ratelimit: "inflight";r=0`)
}
