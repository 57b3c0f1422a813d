package fibertest

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
)

// streams are the ways to set a stream that has length bytes.
func (d Driver) streams() map[string]func(x gatetest.Exchange, s *source, length int) error {
	set := func(stream func(s *source, length int) (io.Reader, int)) func(gatetest.Exchange, *source, int) error {
		return func(x gatetest.Exchange, s *source, length int) error {
			d.RequestCtx(x).SetBodyStream(stream(s, length))
			return nil
		}
	}
	ways := map[string]func(x gatetest.Exchange, s *source, length int) error{
		"Length":         set(func(s *source, length int) (io.Reader, int) { return s, length }),
		"NoLength":       set(func(s *source, _ int) (io.Reader, int) { return s, -1 }),
		"Limited":        set(func(s *source, length int) (io.Reader, int) { return io.LimitReader(s, int64(length)), -1 }),
		"WriterTo":       set(func(s *source, length int) (io.Reader, int) { return writingTo{s}, length }),
		"CloseWithError": set(func(s *source, length int) (io.Reader, int) { return closingWithError{s}, length }),
		"Writer": func(x gatetest.Exchange, s *source, _ int) error {
			d.RequestCtx(x).SetBodyStreamWriter(func(w *bufio.Writer) { _, _ = io.Copy(w, s) })
			return nil
		},
		"ImmediateHeaderFlush": func(x gatetest.Exchange, s *source, length int) error {
			d.RequestCtx(x).Response.ImmediateHeaderFlush = true
			d.RequestCtx(x).SetBodyStream(s, length)
			return nil
		},
	}
	if closesWithError() {
		ways["WriterTo CloseWithError"] = set(func(s *source, length int) (io.Reader, int) {
			return struct {
				closingWithError
				io.WriterTo
			}{closingWithError{s}, writingTo{s}}, length
		})
	}
	for name, send := range d.Streams {
		ways[name] = func(x gatetest.Exchange, s *source, length int) error { return send(x, s, length) }
	}
	return ways
}

// streamed serves /detail, whose handler sets a stream.
func streamed(t *testing.T, d Driver, s *source, gates []gate.Gate, set func(x gatetest.Exchange) error, around ...gatetest.Middleware) (address string) {
	t.Cleanup(s.goOn) // the server waits for its handlers
	return d.Serve(t, Config{}, gatetest.App{Routes: []gatetest.Route{{
		Method: "GET", Pattern: "/detail", Around: around, Gates: gates,
		Handler: func(x gatetest.Exchange) error {
			x.SetHeader("Content-Type", "text/plain")
			return set(x)
		},
	}}})
}

// streamLeft: the gate is left when the stream was read, however it was set. Neither the
// client nor the stream notices the gate.
func streamLeft(t *testing.T, d Driver) {
	for name, set := range d.streams() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []string
			for _, gated := range []bool{false, true} {
				s := newSource()
				l := &leaving{t: t, over: func() bool { over, _ := s.state(); return over || name == "Limited" }}
				var gates []gate.Gate
				if gated {
					gates = append(gates, l)
				}
				address := streamed(t, d, s, gates, func(x gatetest.Exchange) error { return set(x, s, len("one two")) })
				got := make(chan string, 1)
				conn := dial(t, address)
				go func() {
					fmt.Fprint(conn, "GET /detail HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
					sent := bufio.NewReader(conn)
					a, err := http.ReadResponse(sent, nil)
					if err != nil {
						t.Error(err)
						got <- ""
						return
					}
					defer a.Body.Close()
					body, err := io.ReadAll(a.Body)
					if _, err := io.Copy(io.Discard, sent); err != nil { // to the end: only then the server is through with the stream
						t.Error(err)
					}
					got <- fmt.Sprint(a.StatusCode, a.ContentLength, a.TransferEncoding, string(body), err)
				}()
				s.isRead(t)
				l.none()
				s.goOn()
				told = append(told, <-got+s.used())
				if gated {
					l.partly(200)
				}
			}
			if told[0] != told[1] || !strings.Contains(told[0], "one two") {
				t.Errorf("with a gate: got %q, want %q as without", told[1], told[0])
			}
		})
	}
}

// streamOfAFile: so is that of a file, which the system may send by itself.
func streamOfAFile(t *testing.T, d Driver) {
	path, content := longFile(t)
	ways := maps.Clone(d.Files)
	ways["RequestCtx"] = func(x gatetest.Exchange, path string) error {
		d.RequestCtx(x).SendFile(path)
		return nil
	}
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &leaving{t: t}
			address := streamed(t, d, newSource(), []gate.Gate{l}, func(x gatetest.Exchange) error { return send(x, path) })
			conn := dial(t, address)
			fmt.Fprint(conn, "GET /detail HTTP/1.1\r\nHost: a\r\n\r\n")
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			l.none()
			if got, err := io.ReadAll(response.Body); string(got) != content || err != nil {
				t.Errorf("got %d bytes, %v, want the %d of the file", len(got), err, len(content))
			}
			l.partly(200)
		})
	}
}

// streamUnread: a stream that fasthttp only closes, because the response has no body.
func streamUnread(t *testing.T, d Driver) {
	for name, c := range map[string]struct {
		method string
		status int
	}{"HEAD": {"HEAD", 200}, "304": {"GET", 304}, "204": {"GET", 204}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource()
			l := &leaving{t: t, over: func() bool { over, _ := s.state(); return over }}
			address := streamed(t, d, s, []gate.Gate{l}, func(x gatetest.Exchange) error {
				d.RequestCtx(x).SetStatusCode(c.status)
				d.RequestCtx(x).SetBodyStream(s, 7)
				return nil
			})
			conn := dial(t, address)
			fmt.Fprintf(conn, "%s /detail HTTP/1.1\r\nHost: a\r\n\r\n", c.method)
			response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: c.method})
			if err != nil || response.StatusCode != c.status {
				t.Fatalf("got %+v, %v, want %d", response, err, c.status)
			}
			l.partly(c.status)
			if _, closed := s.state(); closed != 1 {
				t.Errorf("the stream was closed %d times, want once", closed)
			}
		})
	}
}

// streamTaken: middleware outside may read the stream, put another body in its place, or
// another stream around it.
func streamTaken(t *testing.T, d Driver) {
	compress := fasthttp.CompressHandler(func(*fasthttp.RequestCtx) {})
	for name, c := range map[string]struct {
		change func(rc *fasthttp.RequestCtx)
		want   string
	}{
		"Read":       {func(rc *fasthttp.RequestCtx) { _ = rc.Response.Body() }, "200 one two"},
		"Replaced":   {func(rc *fasthttp.RequestCtx) { rc.SetBodyString("another") }, "200 another"},
		"Compressed": {func(rc *fasthttp.RequestCtx) { compress(rc) }, "200 \x1f\x8b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource()
			s.goOn()
			over := func() bool { over, _ := s.state(); return over }
			inner, outer := &leaving{t: t, over: over}, &leaving{t: t}
			outer.over = func() bool { return over() && len(inner.all()) == 1 }
			address := d.Serve(t, Config{}, gatetest.App{
				Gates: []gate.Gate{outer},
				Routes: []gatetest.Route{{
					Method: "GET", Pattern: "/detail", Gates: []gate.Gate{inner},
					Around: []gatetest.Middleware{func(x gatetest.Exchange, next func() error) error {
						err := next()
						c.change(d.RequestCtx(x))
						return err
					}},
					Handler: func(x gatetest.Exchange) error {
						x.SetHeader("Content-Type", "text/plain")
						d.RequestCtx(x).SetBodyStream(s, 7)
						return nil
					},
				}},
			})
			if got := get(t, address, "/detail", "Accept-Encoding: gzip"); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			inner.partly(200)
			outer.once()
			if _, closed := s.state(); closed != 1 {
				t.Errorf("the stream was closed %d times, want once", closed)
			}
		})
	}
}

// streamBrokenOff: the client goes away in mid-stream, or the stream cannot be read.
func streamBrokenOff(t *testing.T, d Driver) {
	for name, set := range d.streams() {
		if name == "CloseWithError" && !closesWithError() {
			continue
		}
		t.Run("ClientGone/"+name, func(t *testing.T) {
			t.Parallel()
			s := newSource()
			s.endless, s.first = true, strings.Repeat("one ", 1000)
			l := &leaving{t: t}
			address := streamed(t, d, s, []gate.Gate{l}, func(x gatetest.Exchange) error { return set(x, s, 1<<40) })
			conn := dial(t, address)
			fmt.Fprint(conn, "GET /detail HTTP/1.1\r\nHost: a\r\n\r\n")
			if _, err := io.ReadFull(conn, make([]byte, 10_000)); err != nil {
				t.Fatal(err)
			}
			l.none()
			_ = conn.Close()
			l.partly(200)
			if strings.HasSuffix(name, "CloseWithError") && s.cause() == nil {
				t.Error("the stream was closed without an error, want it told that the rest was not read")
			}
		})
	}
	for name, change := range map[string]func(s *source){
		"Fails":  func(s *source) { s.fails = errBroken },
		"Panics": func(s *source) { s.panics = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource()
			change(s)
			s.goOn()
			l := &leaving{t: t}
			address := streamed(t, d, s, []gate.Gate{l}, func(x gatetest.Exchange) error {
				d.RequestCtx(x).SetBodyStream(s, -1)
				return nil
			})
			exchanged(t, address, "GET /detail HTTP/1.1\r\nHost: a\r\n\r\n")
			l.unseen()
		})
	}
}

// closesWithError reports whether this version of fasthttp closes a stream that has only
// CloseWithError.
func closesWithError() bool {
	s := newSource()
	var response fasthttp.Response
	response.SetBodyStream(closingWithError{s}, -1)
	_ = response.CloseBodyStream()
	_, closed := s.state()
	return closed > 0
}

// streamInATest: a test of Fiber's own reads the stream.
func streamInATest(t *testing.T, d Driver) {
	s := newSource()
	s.goOn()
	l := &leaving{t: t, over: func() bool { over, _ := s.state(); return over }}
	response := d.Test(t, gatetest.App{Routes: []gatetest.Route{{
		Method: "GET", Pattern: "/detail", Gates: []gate.Gate{l},
		Handler: func(x gatetest.Exchange) error {
			d.RequestCtx(x).SetBodyStream(s, -1)
			return nil
		},
	}}}, httptest.NewRequest("GET", "/detail", nil))
	defer response.Body.Close()
	if got, err := io.ReadAll(response.Body); string(got) != "one two" || err != nil {
		t.Errorf("got %q, %v, want \"one two\"", got, err)
	}
	l.partly(200)
}
