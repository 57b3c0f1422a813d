package echolimit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/echolimit"
)

// enter makes a gate of a function.
type enter func(gate.Request) gate.Pass

func (f enter) Enter(q gate.Request) gate.Pass { return f(q) }

// leaving is a gate that keeps what Leave was called with.
type leaving struct {
	t     *testing.T
	calls int
	reply *gate.Reply
}

func (l *leaving) Enter(gate.Request) gate.Pass {
	return gate.Pass{Capture: 100, Leave: func(r *gate.Reply) { l.calls, l.reply = l.calls+1, r }}
}

// saw fails the test unless Leave was called once, with this.
func (l *leaving) saw(status int, body string) {
	l.t.Helper()
	if l.calls != 1 || l.reply == nil {
		l.t.Fatalf("Leave was called %d times, last with %v", l.calls, l.reply)
	}
	if l.reply.Status != status || string(l.reply.Body) != body || l.reply.Partial {
		l.t.Errorf("Leave saw %d %q, partial %t; want %d %q",
			l.reply.Status, l.reply.Body, l.reply.Partial, status, body)
	}
}

func request(e *echo.Echo, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w
}

var errHandler = errors.New("the handler's error")

// Echo asks an error handler to look whether the response is committed. One
// that does not would add a second answer to the first.
func TestResponseIsSealed(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]echo.HandlerFunc{
		"Rendered": func(echo.Context) error { return errHandler },
		"Written": func(c echo.Context) error {
			_ = c.String(409, "conflict")
			return errHandler
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &leaving{t: t}
			e := echo.New()
			e.Logger.SetOutput(io.Discard)
			e.HTTPErrorHandler = func(_ error, c echo.Context) { _ = c.String(409, "conflict") }
			e.GET("/", handler, echolimit.Middleware(l))
			if w := request(e, "/"); w.Code != 409 || w.Body.String() != "conflict" {
				t.Errorf("the client got %d %q", w.Code, w.Body)
			}
			l.saw(409, "conflict")
		})
	}
}

func TestErrorIsStillReturned(t *testing.T) {
	t.Parallel()
	var outside error
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			outside = next(c)
			return outside
		}
	})
	e.GET("/", func(echo.Context) error { return errHandler }, echolimit.Middleware(&leaving{t: t}))
	if w := request(e, "/"); w.Code != 500 || outside != errHandler {
		t.Errorf("got %d; middleware outside saw %v", w.Code, outside)
	}
}

// An error handler that writes nothing has left the answer to others.
func TestErrorLeftOutside(t *testing.T) {
	t.Parallel()
	l := &leaving{t: t}
	e := echo.New()
	e.HTTPErrorHandler = func(error, echo.Context) {}
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if next(c) != nil {
				return c.String(418, "outside")
			}
			return nil
		}
	})
	e.GET("/", func(echo.Context) error { return errHandler }, echolimit.Middleware(l))
	if w := request(e, "/"); w.Code != 418 || w.Body.String() != "outside" {
		t.Errorf("the client got %d %q", w.Code, w.Body)
	}
	if l.calls != 1 || l.reply != nil {
		t.Errorf("Leave was called %d times, last with %v", l.calls, l.reply)
	}
}

func TestUnknownPathIsRenderedInside(t *testing.T) {
	t.Parallel()
	l := &leaving{t: t}
	e := echo.New()
	e.Use(echolimit.Middleware(l))
	const body = `{"message":"Not Found"}` + "\n"
	if w := request(e, "/nowhere"); w.Code != 404 || w.Body.String() != body {
		t.Errorf("the client got %d %q", w.Code, w.Body)
	}
	l.saw(404, body)
}

// buffered holds a response back until the handlers have returned, as
// compression does.
type buffered struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (b *buffered) WriteHeader(status int)      { b.status = status }
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }

// Middleware outside the gate that wraps the writer can still write.
func TestSealDoesNotReachMiddlewareOutside(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			response := c.Response()
			b := &buffered{ResponseWriter: response.Writer}
			response.Writer = b
			defer func() {
				response.Writer = b.ResponseWriter
				response.Writer.WriteHeader(b.status)
				_, _ = response.Writer.Write(b.body.Bytes())
			}()
			return next(c)
		}
	})
	e.GET("/", func(echo.Context) error { return errHandler }, echolimit.Middleware(&leaving{t: t}))
	const body = `{"message":"Internal Server Error"}` + "\n"
	if w := request(e, "/"); w.Code != 500 || w.Body.String() != body {
		t.Errorf("the client got %d %q", w.Code, w.Body)
	}
}

func TestWriterIsOnlyWrappedForLeave(t *testing.T) {
	t.Parallel()
	var outer, inside, after http.ResponseWriter
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			outer = c.Response().Writer
			err := next(c)
			after = c.Response().Writer
			return err
		}
	})
	handler := func(c echo.Context) error {
		inside = c.Response().Writer
		return nil
	}
	zero := enter(func(gate.Request) gate.Pass { return gate.Pass{} })
	e.GET("/zero", handler, echolimit.Middleware(zero))
	e.GET("/leave", handler, echolimit.Middleware(&leaving{t: t}))
	if request(e, "/zero"); inside != outer {
		t.Errorf("for a zero Pass the writer became a %T", inside)
	}
	if request(e, "/leave"); inside == outer || after != outer {
		t.Errorf("for a Leave the writer was %T, and %T after it", inside, after)
	}
}

// The server removes the files of the request it made, and no copy's.
func TestMultipartFormReachesTheServer(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.POST("/", func(c echo.Context) error {
		_, err := c.MultipartForm()
		return err
	}, echolimit.Middleware(enter(func(q gate.Request) gate.Pass {
		return gate.Pass{Context: context.WithValue(q.Context(), leaving{}, 1)}
	})))
	r := httptest.NewRequest("POST", "/", strings.NewReader("--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	e.ServeHTTP(httptest.NewRecorder(), r)
	if r.MultipartForm == nil || r.MultipartForm.Value["a"] == nil {
		t.Errorf("the request has the form %v", r.MultipartForm)
	}
}
