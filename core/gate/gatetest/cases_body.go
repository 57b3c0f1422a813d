package gatetest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// asked is one call of Body and what it must return.
type asked struct {
	max  int64
	want string
	err  error
}

// asking is a gate that calls Body with each max in turn.
func asking(t testing.TB, questions ...asked) gate.Gate {
	return enter(func(q gate.Request) gate.Pass {
		for i, a := range questions {
			got, err := q.Body(a.max)
			if string(got) != a.want || err != a.err {
				t.Errorf("call %d: Body(%d) returned %d bytes %.20q, %v, want %d bytes, %v",
					i, a.max, len(got), got, err, len(a.want), a.err)
			}
		}
		return gate.Pass{}
	})
}

// echoing serves a route whose handler sends the body back, behind gates.
func echoing(t testing.TB, d Driver, around []Middleware, gates ...gate.Gate) (address string) {
	return d.Serve(t, App{Routes: []Route{{
		Method: "POST", Pattern: "/detail", Around: around, Gates: gates,
		Handler: func(x Exchange) error {
			body, err := x.Body()
			if err != nil {
				t.Errorf("the handler read %d bytes, %v, want the whole body and no error", len(body), err)
			}
			return say(200, string(body))(x)
		},
	}}})
}

func bodyTwice(t *testing.T, d Driver) {
	for _, size := range []int{0, 1, 1000, 100_000} {
		body := strings.Repeat("x", size)
		ok := asked{1 << 20, body, nil}
		var length atomic.Int64
		noting := func(x Exchange, next func() error) error {
			length.Store(x.ContentLength())
			return next()
		}
		address := echoing(t, d, nil, asking(t, ok, ok), asking(t, ok))
		c := dial(t, address)
		c.post("/detail", body).is(t, 200, body, "Content-Type: "+plain)
		c.postChunked("/detail", body).is(t, 200, body, "Content-Type: "+plain)

		inside := d.Serve(t, App{
			Gates: []gate.Gate{asking(t, ok)},
			Routes: []Route{{
				Method: "POST", Pattern: "/detail", Around: []Middleware{noting}, Handler: say(200, "ok"),
			}},
		})
		dial(t, inside).post("/detail", body).is(t, 200, "ok", "Content-Type: "+plain)
		if length := length.Load(); length != int64(size) {
			t.Errorf("behind the gate the Content-Length is %d, want %d", length, size)
		}
	}
}

func bodyTooLarge(t *testing.T, d Driver) {
	body := strings.Repeat("0123456789", 20_000)
	n := int64(len(body))
	tooLarge := func(max int64) asked { return asked{max, "", gate.ErrBodyTooLarge} }
	gates := []gate.Gate{
		asking(t, tooLarge(10), tooLarge(10), tooLarge(0), tooLarge(-1)),
		asking(t, tooLarge(n-1), tooLarge(n-1)),
	}
	t.Run("LeftToTheHandler", func(t *testing.T) {
		c := dial(t, echoing(t, d, nil, gates...))
		c.post("/detail", body).is(t, 200, body, "Content-Type: "+plain)
		c.postChunked("/detail", body).is(t, 200, body, "Content-Type: "+plain)
	})
	t.Run("FitsALargerLimit", func(t *testing.T) {
		fits := asking(t, asked{n, body, nil}, asked{math.MaxInt64, body, nil}, tooLarge(n-1), asked{n, body, nil})
		c := dial(t, echoing(t, d, nil, append(gates, fits)...))
		c.post("/detail", body).is(t, 200, body, "Content-Type: "+plain)
		c.postChunked("/detail", body).is(t, 200, body, "Content-Type: "+plain)
	})
}

// bodyAsSent: a gate sees the bytes as they were sent, whatever the framework decodes.
func bodyAsSent(t *testing.T, d Driver) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(strings.Repeat("decoded ", 100)))
	_ = w.Close()
	address := d.Serve(t, App{Routes: []Route{{
		Method: "POST", Pattern: "/detail", Handler: say(200, "ok"),
		Gates: []gate.Gate{asking(t, asked{1 << 10, packed.String(), nil})},
	}}})
	dial(t, address).post("/detail", packed.String(), "Content-Encoding: gzip").is(t, 200, "ok", "Content-Type: "+plain)
}

func bodyBroken(t *testing.T, d Driver) {
	if d.BodyFirst {
		t.Skip("this framework reads the body before a handler runs")
	}
	broken := asked{1 << 20, "", gate.ErrBodyBroken}
	answers := enter(func(gate.Request) gate.Pass {
		return gate.Pass{Reply: &gate.Reply{Status: 400}}
	})
	for name, raw := range map[string]struct{ line, body string }{
		"EndsEarly":       {"Content-Length: 1000", "only these"},
		"ChunksEndEarly":  {"Transfer-Encoding: chunked", "5\r\nthese\r\n"},
		"ChunksMalformed": {"Transfer-Encoding: chunked", "5\r\nthese\r\nno chunk\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			address := d.Serve(t, App{Routes: []Route{{
				Method: "POST", Pattern: "/detail", Handler: never(t),
				Gates: []gate.Gate{asking(t, broken, broken), asking(t, broken), answers},
			}}})
			c := dial(t, address)
			if err := c.write("POST", "/detail", raw.body, raw.line); err != nil {
				t.Fatal(err)
			}
			_ = c.conn.(*net.TCPConn).CloseWrite()
			a, err := c.read("POST")
			if err != nil {
				t.Fatal(err)
			}
			a.is(t, 400, "")
		})
	}
}

func bodyConsumed(t *testing.T, d Driver) {
	if d.BodyFirst {
		t.Skip("this framework reads the body before a handler runs")
	}
	consumed := asked{1 << 20, "", gate.ErrBodyConsumed}
	reading := func(x Exchange, next func() error) error {
		if body, err := x.Body(); string(body) != "body" || err != nil {
			t.Errorf("middleware read %q, %v, want \"body\" and no error", body, err)
		}
		return next()
	}
	outside := d.Serve(t, App{Routes: []Route{{
		Method: "POST", Pattern: "/detail", Handler: say(200, "ok"), Around: []Middleware{reading},
		Gates: []gate.Gate{asking(t, consumed, consumed), asking(t, consumed)},
	}}})
	dial(t, outside).post("/detail", "body").is(t, 200, "ok", "Content-Type: "+plain)

	// Middleware inside a gate cannot use up the body that the gate has kept.
	address := d.Serve(t, App{
		Gates: []gate.Gate{asking(t, asked{4, "body", nil})},
		Routes: []Route{{
			Method: "POST", Pattern: "/detail", Around: []Middleware{reading},
			Gates: []gate.Gate{asking(t, asked{4, "body", nil})},
			Handler: func(x Exchange) error {
				body, err := x.Body()
				return errors.Join(err, say(200, string(body))(x))
			},
		}},
	})
	dial(t, address).post("/detail", "body").is(t, 200, "body", "Content-Type: "+plain)
}
