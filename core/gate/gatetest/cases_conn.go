package gatetest

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// hijacked: a gate is left once a connection that was taken over is let go of.
func hijacked(t *testing.T, d Driver) {
	if !d.Hijack {
		t.Skip("connections of this framework cannot be taken over")
	}
	var left func() int
	early := 0
	address, l := capturing(t, d, 100, func(x Exchange) error {
		return x.Hijack(func(conn net.Conn) {
			early = left()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\nthe handler's own protocol")
		})
	})
	l.expect(1)
	left = func() int { return len(l.all()) }
	c := dial(t, address)
	if err := c.write("GET", "/detail", ""); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c.in)
	if err != nil || !strings.HasSuffix(string(all), "the handler's own protocol") {
		t.Errorf("the client read %q, %v, want it to end with the handler's own protocol", all, err)
	}
	r := l.await(1)[0]
	if r == nil {
		t.Fatal("Leave was called with nil, want a reply")
	}
	if early != 0 {
		t.Errorf("while the handler had the connection, Leave had been called %d times, want it called when the handler has let go", early)
	}
	partial(t, r)
	if r.Status != 0 || len(r.Header) > 0 || len(r.Body) > 0 {
		t.Errorf("Leave saw %d %v %q of a connection that was taken over, want status 0 and neither fields nor body",
			r.Status, r.Header, r.Body)
	}
}

func disconnected(t *testing.T, d Driver) {
	if !d.Disconnect {
		t.Skip("requests of this framework do not end with their client")
	}
	l := watch(t)
	l.expect(1)
	running, ended := make(chan context.Context, 16), make(chan struct{})
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail",
		Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			running <- q.Context()
			return gate.Pass{Capture: 100, Leave: l.leave}
		})},
		Handler: func(x Exchange) error {
			<-x.Context().Done()
			close(ended)
			return say(200, "nobody listens")(x)
		},
	}}})
	c := dial(t, address)
	if err := c.write("GET", "/detail", ""); err != nil {
		t.Fatal(err)
	}
	ctx := next(t, running)
	if err := ctx.Err(); err != nil {
		t.Errorf("while the client waits, the gate's context has the error %v, want none", err)
	}
	_ = c.conn.Close()
	await(t, "the gate's context to end", func() bool { return ctx.Err() != nil })
	next(t, ended)
	seen(t, l.await(1)[0]).is(t, 200, "nobody listens", "Content-Type: "+plain)
}

// native: Key and Context find the framework's own request, also behind a Chain. They
// never find another adapter's.
func native(t *testing.T, d Driver) {
	type result struct {
		header, key string
		ok          bool
		err, missed error
	}
	results := make(chan result, 16)
	reading := enter(func(q gate.Request) gate.Pass {
		var r result
		r.header, r.ok = d.Native(q, "X-Name")
		r.key, r.err = d.Key("X-Name")(q)
		_, r.missed = d.Key("X-Missing")(q)
		results <- r
		return gate.Pass{}
	})
	withContext := enter(func(q gate.Request) gate.Pass {
		return gate.Pass{Context: context.WithValue(q.Context(), contextKey("chain"), 1)}
	})
	address := d.Serve(t, App{
		Gates: []gate.Gate{reading},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Handler: say(200, "ok"),
			Gates: []gate.Gate{gate.Chain(withContext, reading)},
		}},
	})
	c := dial(t, address)
	if err := c.write("GET", "/detail", "", "X-Name: alice"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := next(t, results)
		if r.header != "alice" || !r.ok || r.key != "alice" || r.err != nil || r.missed != ErrNoHeader {
			t.Errorf("got %+v, want alice as header and key, and %v for the missing one", r, ErrNoHeader)
		}
	}
	if a, err := c.read("GET"); err != nil || a.status != 200 {
		t.Errorf("got %d, %v, want 200", a.status, err)
	}

	type foreign struct{ gate.Request }
	if _, ok := d.Native(foreign{}, "X-Name"); ok {
		t.Error("Context returned true for another adapter's request, want false")
	}
	if key, err := d.Key("X-Name")(foreign{}); key != "" || err == nil {
		t.Errorf("Key made %q, %v of another adapter's request, want an error and no key", key, err)
	}
}
