package nethttp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/nethttp"
)

// leaving is a gate that captures, and sends on what Leave is called with.
func leaving(capture int64) (gate.Gate, chan *gate.Reply) {
	left := make(chan *gate.Reply, 10)
	return gateFunc(func(gate.Request) gate.Pass {
		return gate.Pass{Capture: capture, Leave: func(r *gate.Reply) { left <- r }}
	}), left
}

func reply(t *testing.T, left chan *gate.Reply) (r *gate.Reply) {
	t.Helper()
	select {
	case r = <-left:
	case <-time.After(10 * time.Second):
		t.Fatal("Leave was not called within 10 s, want it called")
	}
	return r
}

// abilities lists what a ResponseWriter can do beyond writing.
func abilities(w http.ResponseWriter) map[string]bool {
	_, flusher := w.(http.Flusher)
	_, flushError := w.(interface{ FlushError() error })
	_, hijacker := w.(http.Hijacker)
	_, closeNotifier := w.(http.CloseNotifier) //nolint:staticcheck // deprecated, and still asked for
	_, pusher := w.(http.Pusher)
	_, readerFrom := w.(io.ReaderFrom)
	_, stringWriter := w.(io.StringWriter)
	control := http.NewResponseController(w)
	return map[string]bool{
		"Flusher": flusher, "FlushError": flushError, "Hijacker": hijacker, "CloseNotifier": closeNotifier,
		"Pusher": pusher, "ReaderFrom": readerFrom, "StringWriter": stringWriter,
		"SetReadDeadline":  control.SetReadDeadline(time.Time{}) == nil,
		"SetWriteDeadline": control.SetWriteDeadline(time.Time{}) == nil,
		"EnableFullDuplex": control.EnableFullDuplex() == nil,
	}
}

// TestWriterKeepsItsAbilities: behind a gate that records, a handler can do what it can
// do without one, on HTTP/1 and on HTTP/2.
func TestWriterKeepsItsAbilities(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		g, left := leaving(100)
		var bare, behind map[string]bool
		inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			behind = abilities(w)
			if u, ok := w.(interface{ Unwrap() http.ResponseWriter }); !ok || u.Unwrap() == nil {
				t.Error("the recorder has no Unwrap, or one of nil, want the writer inside")
			}
		})
		guarded := nethttp.Middleware(g)(inner)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			bare = abilities(w)
			guarded.ServeHTTP(w, r)
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		server.Close()
		reply(t, left)
		if !reflect.DeepEqual(bare, behind) || !behind["Flusher"] || !behind["CloseNotifier"] {
			t.Errorf("%s: got %v behind a gate, want %v as without one, with Flusher and CloseNotifier",
				response.Proto, behind, bare)
		}
	}
}

// onlyUnwrap is one way in which middleware outside wraps a writer.
type onlyUnwrap struct{ w http.ResponseWriter }

func (o onlyUnwrap) Header() http.Header         { return o.w.Header() }
func (o onlyUnwrap) Write(p []byte) (int, error) { return o.w.Write(p) }
func (o onlyUnwrap) WriteHeader(status int)      { o.w.WriteHeader(status) }
func (o onlyUnwrap) Unwrap() http.ResponseWriter { return o.w }

// flushing is a writer that tells whether it could flush, and flushed one that does not. Both
// can be hijacked behind Unwrap alone.
type (
	flushing struct{ onlyUnwrap }
	flushed  struct{ onlyUnwrap }
)

func (f flushing) FlushError() error { return http.NewResponseController(f.w).Flush() }
func (f flushed) Flush()             { _ = http.NewResponseController(f.w).Flush() }

// hijacked is one that can be hijacked too.
type hijacked struct{ flushing }

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.w).Hijack()
}

func TestFlushAndHijackBehindUnwrapAreSeen(t *testing.T) {
	t.Parallel()
	wraps := []func(http.ResponseWriter) http.ResponseWriter{
		func(w http.ResponseWriter) http.ResponseWriter { return onlyUnwrap{w} },
		func(w http.ResponseWriter) http.ResponseWriter { return flushing{onlyUnwrap{w}} },
		func(w http.ResponseWriter) http.ResponseWriter { return flushed{onlyUnwrap{w}} },
		func(w http.ResponseWriter) http.ResponseWriter { return hijacked{flushing{onlyUnwrap{w}}} },
	}
	for name, do := range map[string]func(*http.ResponseController) error{
		"Flush": (*http.ResponseController).Flush,
		"Hijack": func(c *http.ResponseController) error {
			conn, _, err := c.Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				_ = conn.Close()
			}
			return err
		},
	} {
		for i, wrap := range wraps {
			g, left := leaving(100)
			guarded := nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := do(http.NewResponseController(w)); err != nil {
					t.Errorf("%s %d: got %v, want no error", name, i, err)
				}
			}))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				guarded.ServeHTTP(wrap(w), r)
			}))
			response, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if !reply(t, left).Partial {
				t.Errorf("%s %d: Leave saw a whole reply, want a partial one", name, i)
			}
			server.Close()
		}
	}
}

// TestEarlyHints: 103 is not the status of the response.
func TestEarlyHints(t *testing.T) {
	t.Parallel()
	g, left := leaving(100)
	server := httptest.NewServer(nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("X-Final", "1")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "done")
	})))
	defer server.Close()
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	r := reply(t, left)
	if response.StatusCode != 202 || r.Status != 202 || string(r.Body) != "done" || r.Partial {
		t.Errorf("the client got %d, and Leave saw %+v, want 202 of both, and done as a whole", response.StatusCode, r)
	}
	if !slices.Contains(r.Header, gate.Field{Name: "X-Final", Value: "1"}) {
		t.Errorf("Leave saw the header %v, want X-Final: 1 in it", r.Header)
	}
}

// TestAbortHandler: the value with which a handler panics is passed on unchanged.
func TestAbortHandler(t *testing.T) {
	t.Parallel()
	g, left := leaving(100)
	guarded := nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		panic(http.ErrAbortHandler)
	}))
	recovered := make(chan any, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			recovered <- v
			panic(v)
		}()
		guarded.ServeHTTP(w, r)
	}))
	defer server.Close()
	response, err := server.Client().Get(server.URL)
	if err == nil {
		_, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}
	if err == nil {
		t.Error("the client took an aborted response for a whole one, want an error")
	}
	if r := reply(t, left); r != nil {
		t.Errorf("Leave saw %+v, want nil", r)
	}
	if v := <-recovered; v != http.ErrAbortHandler {
		t.Errorf("the panic went on as %v, want %v", v, http.ErrAbortHandler)
	}
}

// TestReadFrom: a body that is copied from a file is captured like any other.
func TestReadFrom(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, capture := range []int64{0, 1000, 1 << 20} {
		g, left := leaving(capture)
		server := httptest.NewServer(nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, name)
		})))
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		server.Close()
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("the client got %d bytes, %v, want the %d of the file", len(got), err, len(content))
		}
		r, n := reply(t, left), min(capture, int64(len(content)))
		if !bytes.Equal(r.Body, content[:n]) || r.Partial != (capture < int64(len(content))) {
			t.Errorf("capturing %d: Leave saw %d bytes, Partial %t, want the first %d, Partial %t",
				capture, len(r.Body), r.Partial, n, capture < int64(len(content)))
		}
	}
}

// TestZeroPassWrapsNothing: neither the writer nor the request is wrapped.
func TestZeroPassWrapsNothing(t *testing.T) {
	t.Parallel()
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	ran := false
	h := nethttp.Middleware(reading{})(http.HandlerFunc(func(gotW http.ResponseWriter, gotR *http.Request) {
		ran = gotW == w && gotR == r
	}))
	if h.ServeHTTP(w, r); !ran {
		t.Error("the handler did not run with the writer and the request as they came, want both")
	}
}

// TestContextCopiesFormAndRouteBack: the request of the middleware outside keeps its
// context. It gets the form and the route, which the server and that middleware look for.
func TestContextCopiesFormAndRouteBack(t *testing.T) {
	t.Parallel()
	type key struct{}
	g := gateFunc(func(q gate.Request) gate.Pass {
		return gate.Pass{Context: context.WithValue(q.Context(), key{}, 1)}
	})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(key{}) != 1 {
			t.Error("the handler does not have the gate's context, want it")
		}
		if err := r.ParseMultipartForm(0); err != nil {
			t.Error(err)
		}
	})
	const body = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\ncontent\r\n--b--\r\n"
	r := httptest.NewRequest("POST", "/upload", strings.NewReader(body))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	nethttp.Middleware(g)(mux).ServeHTTP(httptest.NewRecorder(), r)
	if r.Context().Value(key{}) != nil {
		t.Error("the gate's context reached middleware outside, want the one from before there")
	}
	if r.Pattern != "POST /upload" {
		t.Errorf("middleware outside finds the pattern %q, want \"POST /upload\"", r.Pattern)
	}
	if r.MultipartForm == nil || len(r.MultipartForm.File["f"]) != 1 {
		t.Fatal("the server does not find the form, want it: the server must remove its files")
	}
	if err := r.MultipartForm.RemoveAll(); err != nil {
		t.Error(err)
	}
}

func TestMountingNil(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]func(){
		"Middleware":          func() { nethttp.Middleware(nil) },
		"Middleware, handler": func() { nethttp.Middleware(reading{})(nil) },
		"Handler":             func() { nethttp.Handler(nil) },
		"Key":                 func() { nethttp.Key(nil) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "nethttp.") {
					t.Errorf("%s of nil: got the panic %q, want one of nethttp", name, text)
				}
			}()
			mount()
		}()
	}
}

func TestKeyOfAnotherAdapterIsWrongWiring(t *testing.T) {
	t.Parallel()
	key := nethttp.Key(func(*http.Request) (string, error) { return "key", nil })
	if s, err := key(struct{ gate.Request }{}); s != "" || !errors.Is(err, gate.ErrWiring) {
		t.Errorf("got %q, %v, want %v", s, err, gate.ErrWiring)
	}
}

// TestPartsOfABatch: a handler that sends requests of its own, one of which is refused,
// has run all the same. A gate outside takes its answer for the handler's, even if the
// answer and the refusal have the same status and body.
func TestPartsOfABatch(t *testing.T) {
	t.Parallel()
	refusal := gate.Reply{Status: 409, Body: []byte("no"), Refused: true}
	part := nethttp.Middleware(gateFunc(func(gate.Request) gate.Pass { return gate.Pass{Reply: &refusal} }))(nothing)
	forward := func(w http.ResponseWriter, got *httptest.ResponseRecorder, fields bool) {
		if fields {
			for name, values := range got.Header() {
				for _, value := range values {
					w.Header().Add(name, value)
				}
			}
		}
		w.WriteHeader(got.Code)
		_, _ = w.Write(got.Body.Bytes())
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		refused bool
	}{
		"its part of the answer": {func(w http.ResponseWriter, r *http.Request) { forward(w, recordedBy(part, r), false) }, false},
		"and its header fields":  {func(w http.ResponseWriter, r *http.Request) { forward(w, recordedBy(part, r), true) }, false},
		"what others wrote": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Neap-Refused-409"] = []string{"1"} // from the request, or an answer that it hands on
			w.WriteHeader(409)
			_, _ = w.Write([]byte("no"))
		}, false},
		"another answer": {func(w http.ResponseWriter, r *http.Request) {
			recordedBy(part, r)
			w.WriteHeader(http.StatusMultiStatus)
		}, false},
		"the same request": {func(w http.ResponseWriter, r *http.Request) { part.ServeHTTP(w, r) }, true},
		"behind a buffer": {func(w http.ResponseWriter, r *http.Request) {
			http.TimeoutHandler(part, time.Minute, "").ServeHTTP(w, r)
		}, true},
		"behind a wrapper": {func(w http.ResponseWriter, r *http.Request) { part.ServeHTTP(struct{ http.ResponseWriter }{w}, r) }, true},
	} {
		g, left := leaving(100)
		server := httptest.NewServer(nethttp.Middleware(g)(c.handler))
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		for field := range response.Header {
			if strings.HasPrefix(field, "Neap") && name != "what others wrote" {
				t.Errorf("%s: the client got the field %s, want no field of neap's own", name, field)
			}
		}
		if r := reply(t, left); r.Refused != c.refused {
			t.Errorf("%s: Leave saw %d %q with Refused %t, want %t", name, r.Status, r.Body, r.Refused, c.refused)
		}
		server.Close()
	}
}

// recordedBy is what h answers to a request that the handler sends itself.
func recordedBy(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.Clone(r.Context()))
	return w
}
