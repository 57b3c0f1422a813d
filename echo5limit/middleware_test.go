package echo5limit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/echo5limit"
	"github.com/neap-go/neap/internal/gatefake"
)

func request(e *echo.Echo, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w
}

var errHandler = errors.New("the handler's error")

// Echo asks error handlers to check whether the response is committed. An error handler
// that does not check would add a second answer to the first.
func TestResponseIsSealed(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]echo.HandlerFunc{
		"Rendered": func(*echo.Context) error { return errHandler },
		"Written": func(c *echo.Context) error {
			_ = c.String(409, "conflict")
			return errHandler
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &gatefake.Leaving{T: t}
			e := echo.New()
			e.Logger = slog.New(slog.DiscardHandler)
			e.HTTPErrorHandler = func(c *echo.Context, _ error) { _ = c.String(409, "conflict") }
			e.GET("/", handler, echo5limit.Middleware(l))
			if w := request(e, "/"); w.Code != 409 || w.Body.String() != "conflict" {
				t.Errorf("the client got %d %q, want 409 \"conflict\"", w.Code, w.Body)
			}
			l.Saw(409, "conflict", false)
		})
	}
}

func TestErrorIsStillReturned(t *testing.T) {
	t.Parallel()
	var outside error
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			outside = next(c)
			return outside
		}
	})
	e.GET("/", func(*echo.Context) error { return errHandler }, echo5limit.Middleware(&gatefake.Leaving{T: t}))
	if w := request(e, "/"); w.Code != 500 || outside != errHandler {
		t.Errorf("got %d, and middleware outside saw %v, want 500 and %v", w.Code, outside, errHandler)
	}
}

// An error handler that writes nothing leaves the answer to middleware outside.
func TestErrorLeftOutside(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	e := echo.New()
	e.HTTPErrorHandler = func(*echo.Context, error) {}
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			if next(c) != nil {
				return c.String(418, "outside")
			}
			return nil
		}
	})
	e.GET("/", func(*echo.Context) error { return errHandler }, echo5limit.Middleware(l))
	if w := request(e, "/"); w.Code != 418 || w.Body.String() != "outside" {
		t.Errorf("the client got %d %q, want 418 \"outside\"", w.Code, w.Body)
	}
	l.SawNil()
}

func TestUnknownPathIsRenderedInside(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	e := echo.New()
	e.Use(echo5limit.Middleware(l))
	const body = `{"message":"Not Found"}` + "\n"
	if w := request(e, "/nowhere"); w.Code != 404 || w.Body.String() != body {
		t.Errorf("the client got %d %q, want 404 %q", w.Code, w.Body, body)
	}
	l.Saw(404, body, false)
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
func (b *buffered) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Middleware outside the gate that wraps the writer can still write.
func TestSealDoesNotReachMiddlewareOutside(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			b := &buffered{ResponseWriter: c.Response()}
			c.SetResponse(b)
			defer func() {
				c.SetResponse(b.ResponseWriter)
				c.Response().WriteHeader(b.status)
				_, _ = c.Response().Write(b.body.Bytes())
			}()
			return next(c)
		}
	})
	e.GET("/", func(*echo.Context) error { return errHandler }, echo5limit.Middleware(&gatefake.Leaving{T: t}))
	const body = `{"message":"Internal Server Error"}` + "\n"
	if w := request(e, "/"); w.Code != 500 || w.Body.String() != body {
		t.Errorf("the client got %d %q, want 500 %q", w.Code, w.Body, body)
	}
}

func TestWriterIsOnlyWrappedForLeave(t *testing.T) {
	t.Parallel()
	writer := func(c *echo.Context) http.ResponseWriter { return c.Response().(*echo.Response).ResponseWriter }
	var outer, inside, after http.ResponseWriter
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			outer = writer(c)
			err := next(c)
			after = writer(c)
			return err
		}
	})
	handler := func(c *echo.Context) error {
		inside = writer(c)
		return nil
	}
	zero := gatefake.Func(func(gate.Request) gate.Pass { return gate.Pass{} })
	e.GET("/zero", handler, echo5limit.Middleware(zero))
	e.GET("/leave", handler, echo5limit.Middleware(&gatefake.Leaving{T: t}))
	if request(e, "/zero"); inside != outer {
		t.Errorf("for a zero Pass the writer became a %T, want the one from before, a %T", inside, outer)
	}
	if request(e, "/leave"); inside == outer || after != outer {
		t.Errorf("for a Leave the writer was a %T, and a %T after it, "+
			"want another, and then the one from before, a %T", inside, after, outer)
	}
}

// The server removes the files of the request that it made, and not those of a copy.
func TestMultipartFormReachesTheServer(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.POST("/", func(c *echo.Context) error {
		_, err := c.MultipartForm()
		return err
	}, echo5limit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
		return gate.Pass{Context: context.WithValue(q.Context(), gatefake.Leaving{}, 1)}
	})))
	r := httptest.NewRequest("POST", "/", strings.NewReader("--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	e.ServeHTTP(httptest.NewRecorder(), r)
	if r.MultipartForm == nil || r.MultipartForm.Value["a"] == nil {
		t.Errorf("the request has the form %v, want one with the field a", r.MultipartForm)
	}
}
