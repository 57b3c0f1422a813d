package fibertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/gatefake"
)

// errorHandlerFails: if the ErrorHandler fails too, the answer is Fiber's own 500.
func errorHandlerFails(t *testing.T, d Driver) {
	l := &gatefake.Leaving{T: t}
	config := Config{ErrorHandler: func(error) error { return errors.New("the error handler's own") }}
	address := d.Serve(t, config, gatetest.App{Routes: []gatetest.Route{{
		Method: "GET", Pattern: "/detail", Gates: []gate.Gate{l},
		Handler: func(gatetest.Exchange) error { return errors.New("the handler's") },
	}}})
	const text = "Internal Server Error"
	if got := get(t, address, "/detail"); got != "500 "+text {
		t.Errorf("got %q, want %q", got, "500 "+text)
	}
	l.Saw(500, text, false)
}

// replyReplaces: the body of a reply replaces one that middleware outside has set with
// SetBodyRaw, which fasthttp stores separately.
func replyReplaces(t *testing.T, d Driver) {
	address := d.Serve(t, Config{}, gated(told(func(gate.Request) string { return "of the gate" }),
		d.before(func(rc *fasthttp.RequestCtx) { rc.Response.SetBodyRaw([]byte("of middleware")) })))
	if got := get(t, address, "/"); got != "200 of the gate" {
		t.Errorf("got %q, want \"200 of the gate\"", got)
	}
}

// replyOfATimeout: a handler that has given up with fasthttp's TimeoutError may have left
// work that goes on. How that ends is unknown, and what is in the response does not reach
// the client.
func replyOfATimeout(t *testing.T, d Driver) {
	l := &gatefake.Leaving{T: t}
	address := d.Serve(t, Config{}, gatetest.App{Routes: []gatetest.Route{{
		Method: "GET", Pattern: "/detail", Gates: []gate.Gate{l},
		Handler: func(x gatetest.Exchange) error {
			d.RequestCtx(x).TimeoutErrorWithCode("too late", 503)
			return x.Send(200, "done")
		},
	}}})
	if got := get(t, address, "/detail"); got != "503 too late" {
		t.Errorf("got %q, want \"503 too late\"", got)
	}
	l.SawNil()
}

// refusing is a gate that refuses with a 409 and with a body that is long enough to be
// compressed.
func refusing(body string) gate.Gate {
	return gatefake.Func(func(gate.Request) gate.Pass {
		return gate.Pass{Reply: &gate.Reply{
			Status: 409, Refused: true, Body: []byte(body),
			Header: []gate.Field{{Name: "Content-Type", Value: "text/plain"}},
		}}
	})
}

var refused = refusing(strings.Repeat("refused ", 100))

// serveOwn sends a request of the handler's own through the application, as a handler
// does for the parts of a batch.
func (d Driver) serveOwn(x gatetest.Exchange, path string) {
	rc := d.RequestCtx(x)
	whole := string(rc.Request.Header.RequestURI())
	rc.Request.SetRequestURI(path)
	d.Again(x)
	rc.Request.SetRequestURI(whole)
}

// refusalOrAnswer: one of a handler's own requests may be refused. A gate outside tells
// that refusal from the handler's answer, even if both have the same status.
func refusalOrAnswer(t *testing.T, d Driver) {
	const again = "the same answer"
	compress := fasthttp.CompressHandler(func(*fasthttp.RequestCtx) {})
	for name, c := range map[string]struct {
		route   gatetest.Route
		want    string
		refused bool
	}{
		"Refused": {gatetest.Route{Gates: []gate.Gate{refused}}, "409 refused ", true},
		"Compressed": {gatetest.Route{
			Around: []gatetest.Middleware{func(x gatetest.Exchange, next func() error) error {
				err := next()
				compress(d.RequestCtx(x))
				return err
			}},
			Gates: []gate.Gate{refused},
		}, "409 \x1f\x8b", true},
		"PartRefused": {gatetest.Route{Handler: func(x gatetest.Exchange) error {
			d.serveOwn(x, "/refused")
			d.RequestCtx(x).Response.Reset()
			return x.Send(409, "one of the parts was refused")
		}}, "409 one of the parts was refused", false},
		"Replaced": {gatetest.Route{
			Around: []gatetest.Middleware{func(x gatetest.Exchange, next func() error) error {
				_ = next()
				return x.Send(409, "done in another way")
			}},
			Gates: []gate.Gate{refused},
		}, "409 done in another way", false},
		"NextPartAdmitted": {gatetest.Route{Handler: func(x gatetest.Exchange) error {
			d.serveOwn(x, "/again")
			d.RequestCtx(x).Response.Reset()
			d.serveOwn(x, "/admitted")
			return nil
		}}, "409 " + again, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &gatefake.Leaving{T: t}
			whole := c.route
			whole.Method, whole.Pattern = "POST", "/"
			address := d.Serve(t, Config{}, gatetest.App{
				Gates: []gate.Gate{gatefake.Func(func(q gate.Request) gate.Pass {
					if q.Path() != "/" {
						return gate.Pass{} // of a part
					}
					return l.Enter(q)
				})},
				Routes: []gatetest.Route{
					whole,
					{Method: "POST", Pattern: "/refused", Gates: []gate.Gate{refused}},
					{Method: "POST", Pattern: "/again", Gates: []gate.Gate{refusing(again)}},
					{Method: "POST", Pattern: "/admitted", Handler: func(x gatetest.Exchange) error { return x.Send(409, again) }},
				},
			})
			got := answered(t, address, "POST / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nContent-Length: 0\r\n\r\n")
			if !strings.HasPrefix(got, c.want) || l.Calls != 1 || l.Reply == nil || l.Reply.Refused != c.refused {
				t.Errorf("got %q, and the gate outside %d times %+v, want %q, and once a refusal: %t",
					got, l.Calls, l.Reply, c.want, c.refused)
			}
		})
	}
}

// refusalOfAPart: a handler that has run does not run again under its key, even if one of
// its own requests was refused.
func refusalOfAPart(t *testing.T, d Driver) {
	guard, err := idempotency.New(gatefake.Redis(t), "batch", idempotency.Retry{}, &idempotency.Options{Budget: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	address := d.Serve(t, Config{}, gatetest.App{Routes: []gatetest.Route{
		{Method: "POST", Pattern: "/refused", Gates: []gate.Gate{refused}},
		{
			Method: "POST", Pattern: "/batch", Gates: []gate.Gate{gate.Idempotent(guard, gate.Everyone, nil)},
			Handler: func(x gatetest.Exchange) error {
				runs++
				d.serveOwn(x, "/refused")
				d.RequestCtx(x).Response.Reset()
				return x.Send(409, "some of it was refused")
			},
		},
	}})
	for range 2 {
		got := answered(t, address, "POST /batch HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\nContent-Length: 0\r\n\r\n")
		if got != "409 some of it was refused" {
			t.Errorf("got %q, want \"409 some of it was refused\"", got)
		}
	}
	if runs != 1 {
		t.Errorf("it ran %d times, want once", runs)
	}
}
