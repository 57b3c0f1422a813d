package echotest

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatefake"
)

var errHandler = errors.New("the handler's error")

func failing[C Context](C) error { return errHandler }

// Echo asks error handlers to check whether the response is committed. An error handler
// that does not check would add a second answer to the first.
func (d Driver[C]) responseIsSealed(t *testing.T) {
	for name, handler := range map[string]Handler[C]{
		"Rendered": failing[C],
		"Written": func(c C) error {
			_ = c.String(409, "conflict")
			return errHandler
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &gatefake.Leaving{T: t}
			e := d.New()
			e.OnError(func(c C, _ error) { _ = c.String(409, "conflict") })
			e.Add("GET", "/", handler, d.Middleware(l))
			if w := request(e, "/"); w.Code != 409 || w.Body.String() != "conflict" {
				t.Errorf("the client got %d %q, want 409 \"conflict\"", w.Code, w.Body)
			}
			l.Saw(409, "conflict", false)
		})
	}
}

func (d Driver[C]) errorIsStillReturned(t *testing.T) {
	var outside error
	e := d.New()
	e.Use(func(next Handler[C]) Handler[C] {
		return func(c C) error {
			outside = next(c)
			return outside
		}
	})
	e.Add("GET", "/", failing[C], d.Middleware(&gatefake.Leaving{T: t}))
	if w := request(e, "/"); w.Code != 500 || outside != errHandler {
		t.Errorf("got %d, and middleware outside saw %v, want 500 and %v", w.Code, outside, errHandler)
	}
}

// An error handler that writes nothing leaves the answer to middleware outside.
func (d Driver[C]) errorLeftOutside(t *testing.T) {
	l := &gatefake.Leaving{T: t}
	e := d.New()
	e.OnError(func(C, error) {})
	e.Use(func(next Handler[C]) Handler[C] {
		return func(c C) error {
			if next(c) != nil {
				return c.String(418, "outside")
			}
			return nil
		}
	})
	e.Add("GET", "/", failing[C], d.Middleware(l))
	if w := request(e, "/"); w.Code != 418 || w.Body.String() != "outside" {
		t.Errorf("the client got %d %q, want 418 \"outside\"", w.Code, w.Body)
	}
	l.SawNil()
}

func (d Driver[C]) unknownPathIsRenderedInside(t *testing.T) {
	l := &gatefake.Leaving{T: t}
	e := d.New()
	e.Use(d.Middleware(l))
	const body = `{"message":"Not Found"}` + "\n"
	if w := request(e, "/nowhere"); w.Code != 404 || w.Body.String() != body {
		t.Errorf("the client got %d %q, want 404 %q", w.Code, w.Body, body)
	}
	l.Saw(404, body, false)
}

// buffered holds a response back until the handlers have returned, as compression does.
type buffered struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (b *buffered) WriteHeader(status int)      { b.status = status }
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }
func (b *buffered) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Middleware outside the gate that wraps the writer can still write.
func (d Driver[C]) sealDoesNotReachOutside(t *testing.T) {
	e := d.New()
	e.Use(func(next Handler[C]) Handler[C] {
		return func(c C) error {
			b := new(buffered)
			undo := d.Wrap(c, func(w http.ResponseWriter) http.ResponseWriter {
				b.ResponseWriter = w
				return b
			})
			defer func() {
				undo()
				b.ResponseWriter.WriteHeader(b.status)
				_, _ = b.ResponseWriter.Write(b.body.Bytes())
			}()
			return next(c)
		}
	})
	e.Add("GET", "/", failing[C], d.Middleware(&gatefake.Leaving{T: t}))
	const body = `{"message":"Internal Server Error"}` + "\n"
	if w := request(e, "/"); w.Code != 500 || w.Body.String() != body {
		t.Errorf("the client got %d %q, want 500 %q", w.Code, w.Body, body)
	}
}

func (d Driver[C]) writerIsWrappedForLeave(t *testing.T) {
	var outer, inside, after http.ResponseWriter
	e := d.New()
	e.Use(func(next Handler[C]) Handler[C] {
		return func(c C) error {
			outer = d.Writer(c)
			err := next(c)
			after = d.Writer(c)
			return err
		}
	})
	handler := func(c C) error {
		inside = d.Writer(c)
		return nil
	}
	zero := gatefake.Func(func(gate.Request) gate.Pass { return gate.Pass{} })
	e.Add("GET", "/zero", handler, d.Middleware(zero))
	e.Add("GET", "/leave", handler, d.Middleware(&gatefake.Leaving{T: t}))
	if request(e, "/zero"); inside != outer {
		t.Errorf("for a zero Pass the writer became a %T, want the one from before, a %T", inside, outer)
	}
	if request(e, "/leave"); inside == outer || after != outer {
		t.Errorf("for a Leave the writer was a %T, and a %T after it, "+
			"want another, and then the one from before, a %T", inside, after, outer)
	}
}
