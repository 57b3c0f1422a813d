package gatehttp_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// TestLeaveSeesTheGuessedContentType: Leave sees the Content-Type that net/http guesses
// for the client.
func TestLeaveSeesTheGuessedContentType(t *testing.T) {
	t.Parallel()
	write := func(parts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for _, part := range parts {
				_, _ = io.WriteString(w, part)
			}
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"nothing":                  write(),
		"text":                     write("text"),
		"empty, then HTML":         write("", "<html>"),
		"HTML, in parts":           write("<ht", "ml>"),
		"beyond what is looked at": write(strings.Repeat(" ", 511), "<html>"),
		"flushed too early": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "<ht")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "ml>")
		},
		"flushed before all": func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "<html>")
		},
		"said": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "a/b")
			write("<html>")(w, r)
		},
		"chunked": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Transfer-Encoding", "identity")
			write("<html>")(w, r)
		},
		"suppressed": func(w http.ResponseWriter, r *http.Request) { w.Header()["Content-Type"] = nil; write("<html>")(w, r) },
		"encoded": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "x")
			write("<html>")(w, r)
		},
		"copied": func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, strings.NewReader("<html>")) },
		"204":    func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204); write("<html>")(w, r) },
		"304":    func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(304); write("<html>")(w, r) },
	} {
		for _, method := range []string{"GET", "HEAD"} {
			replies := make(chan *gate.Reply, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := gatehttp.NewRecorder(w.Header(), r.Method, 0)
				h(rec.Wrap(w), r)
				replies <- rec.Reply()
			}))
			request, _ := http.NewRequest(method, server.URL, nil)
			response, err := server.Client().Transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			server.Close()
			seen := http.Header{}
			gatehttp.Apply(seen, (<-replies).Header)
			if got, want := seen["Content-Type"], response.Header["Content-Type"]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: Leave sees the Content-Type %q, want %q as the client", method, name, got, want)
			}
		}
	}
}

// refusing is a writer whose connection cannot be taken over.
type refusing struct{ http.ResponseWriter }

func (refusing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, errors.New("not this one")
}

// granting is a writer whose connection can be taken over.
type granting struct{ http.ResponseWriter }

func (granting) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// TestHijack: after a connection was taken over, no status counts any more. An attempt
// that failed takes nothing over.
func TestHijack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		w       http.ResponseWriter
		early   int
		status  int
		partial bool
	}{
		"taken over":                 {granting{httptest.NewRecorder()}, 0, 0, true},
		"taken over behind a status": {granting{httptest.NewRecorder()}, 201, 201, true},
		"refused":                    {refusing{httptest.NewRecorder()}, 0, 418, false},
		"refused, behind a status":   {refusing{httptest.NewRecorder()}, 201, 201, false},
	} {
		rec := gatehttp.NewRecorder(c.w.Header(), "GET", 100)
		w := rec.Wrap(c.w)
		if c.early != 0 {
			w.WriteHeader(c.early)
		}
		_, _, _ = w.(http.Hijacker).Hijack()
		w.WriteHeader(418)
		if got := rec.Reply(); got.Status != c.status || got.Partial != c.partial {
			t.Errorf("%s: got %d, Partial %t, want %d, %t", name, got.Status, got.Partial, c.status, c.partial)
		}
	}
}

// copying is a writer that copies a body by itself, as net/http's does.
type copying struct{ *httptest.ResponseRecorder }

func (c copying) ReadFrom(src io.Reader) (int64, error) { return io.Copy(c.ResponseRecorder, src) }

// TestReadFrom: bytes that are copied after the capture is full still make the reply
// partial.
func TestReadFrom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method  string
		capture int64
		status  int
		partial bool
	}{
		{"GET", 0, 200, true}, {"GET", 3, 200, true}, {"GET", 4, 200, false}, {"GET", 100, 200, false},
		{"HEAD", 0, 200, false}, {"GET", 0, 304, false},
	} {
		w := copying{httptest.NewRecorder()}
		w.Header().Set("Content-Type", "text/plain")
		rec := gatehttp.NewRecorder(w.Header(), c.method, c.capture)
		wrapped := rec.Wrap(w)
		wrapped.WriteHeader(c.status)
		n, err := wrapped.(io.ReaderFrom).ReadFrom(strings.NewReader("body"))
		if got := rec.Reply(); c.status == 200 && (n != 4 || err != nil) || got.Partial != c.partial {
			t.Errorf("%s, capturing %d, %d: got %d copied, %v, Partial %t, want 4 copied with 200, and Partial %t",
				c.method, c.capture, c.status, n, err, got.Partial, c.partial)
		}
	}
}

// failing is a writer whose client goes away after a byte, or that is used wrongly.
type failing struct {
	http.ResponseWriter
	err error
}

func (f failing) Write(p []byte) (int, error) { return min(1, len(p)), f.err }

func (f failing) ReadFrom(src io.Reader) (int64, error) {
	n, _ := src.Read(make([]byte, 2))
	if f.err == errUnsent {
		return 0, f.err
	}
	return int64(min(1, n)), f.err
}

// errUnsent is that of a writer which does not say how much it has read.
var errUnsent = errors.New("broken pipe")

// TestClientGone: if a response is to be captured whole, its handler does not notice that
// the client is gone, and Leave sees all of it. Otherwise, or if the error is the
// handler's own, the handler gets the error.
func TestClientGone(t *testing.T) {
	t.Parallel()
	pipe, broken := errors.New("broken pipe"), errors.New("broken source")
	write := func(w http.ResponseWriter, parts ...string) (n int64, err error) {
		for _, part := range parts {
			wrote, failed := io.WriteString(w, part)
			n, err = n+int64(wrote), errors.Join(err, failed)
		}
		return n, err
	}
	read := func(w http.ResponseWriter, parts ...string) (int64, error) {
		return w.(io.ReaderFrom).ReadFrom(iotest.OneByteReader(strings.NewReader(strings.Join(parts, ""))))
	}
	for name, c := range map[string]struct {
		capture int64
		err     error
		do      func(w http.ResponseWriter, parts ...string) (int64, error)
		body    string
		n       int64
		told    bool
	}{
		"written":            {6, pipe, write, "unseen", 6, false},
		"copied":             {6, pipe, read, "unseen", 6, false},
		"written, too long":  {5, pipe, write, "unsee", 4, true},
		"copied, too long":   {5, pipe, read, "unsee", 1, true},
		"written, unseen":    {0, pipe, write, "", 2, true},
		"more than declared": {6, http.ErrContentLength, write, "unseen", 2, true},
		"taken over":         {6, http.ErrHijacked, write, "unseen", 2, true},
		"flushed": {6, pipe, func(w http.ResponseWriter, parts ...string) (int64, error) {
			w.(http.Flusher).Flush()
			return write(w, parts...)
		}, "unseen", 2, true},
		"copied in parts, the first of which fills the capture": {3, errUnsent, func(w http.ResponseWriter, parts ...string) (n int64, err error) {
			w.Header().Set("Content-Type", "text/plain")
			for _, part := range parts {
				var copied int64
				if copied, err = read(w, part); err != nil {
					return n, err
				}
				n += copied
			}
			return n, nil
		}, "uns", 3, true},
		"a source that breaks": {6, pipe, func(w http.ResponseWriter, _ ...string) (int64, error) {
			src := io.MultiReader(strings.NewReader("uns"), iotest.ErrReader(broken))
			return w.(io.ReaderFrom).ReadFrom(src)
		}, "uns", 1, true},
	} {
		w := failing{httptest.NewRecorder(), c.err}
		rec := gatehttp.NewRecorder(w.Header(), "GET", c.capture)
		n, err := c.do(rec.Wrap(struct {
			failing
			http.Flusher
		}{w, w.ResponseWriter.(http.Flusher)}), "uns", "een")
		if got := rec.Reply(); string(got.Body) != c.body || got.Partial != c.told || n != c.n || (err != nil) != c.told {
			t.Errorf("%s: Leave saw %q, Partial %t, and the handler was told %d, %v, "+
				"want %q, Partial %t, and %d with an error: %t",
				name, got.Body, got.Partial, n, err, c.body, c.told, c.n, c.told)
		}
	}
}

// TestNothingIsReadForNoBody: the error of the writer ends a copy to a response that has no
// body, as without a recorder.
func TestNothingIsReadForNoBody(t *testing.T) {
	t.Parallel()
	w := failing{httptest.NewRecorder(), http.ErrBodyNotAllowed}
	rec := gatehttp.NewRecorder(w.Header(), "GET", 100)
	wrapped := rec.Wrap(w)
	wrapped.WriteHeader(204)
	src := strings.NewReader("unread")
	if n, err := wrapped.(io.ReaderFrom).ReadFrom(src); n != 1 || err != http.ErrBodyNotAllowed || src.Len() != 4 {
		t.Errorf("got %d copied, %v, and %d bytes left, want 1, %v and the 4 that the writer does not read", n, err, src.Len(), http.ErrBodyNotAllowed)
	}
	if got := rec.Reply(); got.Partial || len(got.Body) > 0 {
		t.Errorf("Leave saw %q, Partial %t, want a whole response without a body", got.Body, got.Partial)
	}
}

func TestPartial(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method  string
		body    string
		partial bool
		do      http.HandlerFunc
	}{
		"whole": {"GET", "whole", false, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "who")
			_, _ = w.Write([]byte("le"))
		}},
		"less than declared": {"GET", "half", true, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "8")
			_, _ = io.WriteString(w, "half")
		}},
		"more than declared": {"GET", "more than", true, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "4")
			_, _ = io.WriteString(w, "more than") // net/http notices, but not if it copies
		}},
		"as declared": {"GET", "as declared", false, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "11")
			_, _ = io.WriteString(w, "as declared")
		}},
		"as declared, for HEAD": {"HEAD", "", false, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "8")
		}},
		"flushed": {"GET", "seen", true, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "seen")
			w.(http.Flusher).Flush()
		}},
		"flushed for HEAD": {"HEAD", "", true, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "unseen")
			w.(http.Flusher).Flush()
		}},
	} {
		w := http.ResponseWriter(httptest.NewRecorder())
		rec := gatehttp.NewRecorder(w.Header(), c.method, 100)
		c.do(rec.Wrap(w), nil)
		if got := rec.Reply(); string(got.Body) != c.body || got.Partial != c.partial {
			t.Errorf("%s: got %q, Partial %t, want %q, Partial %t", name, got.Body, got.Partial, c.body, c.partial)
		}
	}
}

// TestCommit: the first final status counts, and the header as it was then.
func TestCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		commit []int
		want   int
	}{
		"none":             {nil, 200},
		"informational":    {[]int{100, 102, 103, 404}, 404},
		"switching":        {[]int{101, 200}, 101},
		"the first":        {[]int{404, 200}, 404},
		"none that can be": {[]int{0, -1, 99, 1000, 204}, 204},
	} {
		h := http.Header{"X-Early": {"1"}, "X-List": {"1", "2"}, "X-Suppressed": nil}
		rec := gatehttp.NewRecorder(h, "GET", 0)
		for _, status := range c.commit {
			rec.Commit(status)
		}
		if len(c.commit) > 0 {
			h.Set("X-Late", "1")
			h.Add("X-List", "3")
		}
		got := rec.Reply()
		want := []gate.Field{{Name: "X-Early", Value: "1"}, {Name: "X-List", Value: "1"}, {Name: "X-List", Value: "2", Add: true}}
		if got.Status != c.want || !reflect.DeepEqual(got.Header, want) {
			t.Errorf("%s: got %d %v, want %d %v", name, got.Status, got.Header, c.want, want)
		}
	}
}

// TestReplyHasItsOwnFraming: the framing that middleware has set before belongs to
// another body.
func TestReplyHasItsOwnFraming(t *testing.T) {
	t.Parallel()
	for status, length := range map[int][]string{200: {"4"}, 204: nil, 304: nil} {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Length", "99")
		w.Header().Set("Transfer-Encoding", "chunked")
		gatehttp.WriteReply(w, "GET", &gate.Reply{Status: status, Body: []byte("body")})
		if got := w.Header()["Content-Length"]; !reflect.DeepEqual(got, length) || w.Header()["Transfer-Encoding"] != nil {
			t.Errorf("%d: got the header %v, want the Content-Length %q and no Transfer-Encoding",
				status, w.Header(), length)
		}
	}
}

// TestReplyReplays: what Leave saw, sent again, is the same response.
func TestReplyReplays(t *testing.T) {
	t.Parallel()
	first := httptest.NewRecorder()
	rec := gatehttp.NewRecorder(first.Header(), "GET", 100)
	w := rec.Wrap(first)
	w.Header().Add("Set-Cookie", "a=1")
	w.Header().Add("Set-Cookie", "b=2")
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(201)
	_, _ = io.WriteString(w, "made")
	second := httptest.NewRecorder()
	gatehttp.WriteReply(second, "GET", rec.Reply())
	second.Header().Del("Content-Length")
	if second.Code != 201 || second.Body.String() != "made" || !reflect.DeepEqual(first.Header(), second.Header()) {
		t.Errorf("got %d %q %v, want 201 \"made\" %v", second.Code, second.Body, second.Header(), first.Header())
	}
}
