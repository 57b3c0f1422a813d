package gatetest

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// hijacked: a gate is left once a connection that was taken over is let go of.
func hijacked(t *testing.T, d Driver) {
	if !d.Hijack {
		t.Skip("connections of this framework cannot be taken over")
	}
	var leaving atomic.Pointer[leaves]
	var early atomic.Int64
	address, l := capturing(t, d, 100, func(x Exchange) error {
		return x.Hijack(func(conn net.Conn) {
			early.Store(int64(len(leaving.Load().all())))
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\nthe handler's own protocol")
		})
	})
	l.expect(1)
	leaving.Store(l)
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
	if n := early.Load(); n != 0 {
		t.Errorf("while the handler had the connection, Leave had been called %d times, want it called when the handler has let go", n)
	}
	partial(t, r)
	switch sent := len(r.Header) > 0; {
	case len(r.Body) > 0:
		t.Errorf("Leave saw the body %q of a connection that was taken over, want none", r.Body)
	case d.HijackAnswers && (r.Status != 200 || !sent || !strings.HasPrefix(string(all), "HTTP/1.1 200 ")):
		t.Errorf("Leave saw %d %v, and the client read %q, want a 200 for both", r.Status, r.Header, all)
	case !d.HijackAnswers && (r.Status != 0 || sent):
		t.Errorf("Leave saw %d %v of a connection that was taken over, want status 0 and no fields", r.Status, r.Header)
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
	ctx := next(t, "the handler to run", running)
	if err := ctx.Err(); err != nil {
		t.Errorf("while the client waits, the gate's context has the error %v, want none", err)
	}
	_ = c.conn.Close()
	await(t, "the gate's context to end", func() bool { return ctx.Err() != nil })
	next(t, "the handler's context to end", ended)
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
		r := next(t, "the gate to report what Key and Context find", results)
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
