package gatehttp_test

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// counting counts how much of a body was read.
type counting struct {
	io.Reader
	n      int
	closed bool
}

func (c *counting) Read(p []byte) (int, error) {
	if c.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func (c *counting) Close() error {
	c.closed = true
	return nil
}

// withBody is a request whose declared length is length; -1 stands for a chunked body.
func withBody(body io.Reader, length int64) (gatehttp.Request, *counting) {
	r := httptest.NewRequest("POST", "/", nil)
	c := &counting{Reader: body}
	r.Body, r.ContentLength = c, length
	return gatehttp.Request{HTTP: r}, c
}

func TestBodyReadsNoMoreThanItMust(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		declared, max int64
		read          int
	}{
		{1 << 20, 100, 0}, {-1, 100, 101}, {-1, 0, 1}, {-1, -1, 0}, {-1, 40_000, 40_001},
	} {
		q, src := withBody(strings.NewReader(body), c.declared)
		for range 2 {
			if _, err := q.Body(c.max); err != gate.ErrBodyTooLarge {
				t.Errorf("Body(%d): got %v, want %v", c.max, err, gate.ErrBodyTooLarge)
			}
		}
		if src.n != c.read {
			t.Errorf("Body(%d) of a body declared as %d read %d bytes, want %d", c.max, c.declared, src.n, c.read)
		}
		if rest, err := io.ReadAll(q.HTTP.Body); string(rest) != body || err != nil {
			t.Errorf("the handler then read %d bytes, %v, want the %d of the body", len(rest), err, len(body))
		}
	}
}

// TestBodyDeclaredLargeSentSmall: memory follows what was sent, not what was
// declared.
func TestBodyDeclaredLargeSentSmall(t *testing.T) {
	t.Parallel()
	pipe, w := io.Pipe()
	go func() {
		_, _ = w.Write([]byte("few"))
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	}()
	q, _ := withBody(pipe, 1<<40)
	if _, err := q.Body(math.MaxInt64); err != gate.ErrBodyBroken {
		t.Errorf("got %v, want %v", err, gate.ErrBodyBroken)
	}
}

func TestBodyFailures(t *testing.T) {
	t.Parallel()
	closed := &counting{Reader: strings.NewReader("body")}
	_ = closed.Close()
	for name, c := range map[string]struct {
		body     io.Reader
		declared int64
		encoding string
		want     error
	}{
		"whole":                      {strings.NewReader("body"), 4, "", nil},
		"whole, chunked":             {strings.NewReader("body"), -1, "", nil},
		"byte by byte":               {iotest.OneByteReader(strings.NewReader("body")), 4, "", nil},
		"data with EOF":              {iotest.DataErrReader(strings.NewReader("body")), 4, "", nil},
		"empty, chunked":             {strings.NewReader(""), -1, "", nil},
		"read by others":             {strings.NewReader(""), 4, "", gate.ErrBodyConsumed},
		"read in part":               {strings.NewReader("dy"), 4, "", gate.ErrBodyConsumed},
		"closed by others":           {closed, -1, "", gate.ErrBodyConsumed},
		"decoded to less":            {strings.NewReader("body"), 24, "gzip", nil},
		"decoded to more":            {strings.NewReader("body"), 2, "gzip", nil},
		"encoded and read by others": {strings.NewReader(""), 24, "gzip", gate.ErrBodyConsumed},
		"ends early":                 {io.MultiReader(strings.NewReader("bo"), iotest.ErrReader(io.ErrUnexpectedEOF)), 4, "", gate.ErrBodyBroken},
		"breaks at once":             {iotest.ErrReader(errors.New("reset")), 4, "", gate.ErrBodyBroken},
		"above an outer limit":       {http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("body")), 3), -1, "", gate.ErrBodyTooLarge},
	} {
		q, _ := withBody(c.body, c.declared)
		if c.encoding != "" {
			q.HTTP.Header.Set("Content-Encoding", c.encoding)
		}
		for range 3 {
			got, err := q.Body(100)
			if err != c.want || err == nil && len(got) > 0 && string(got) != "body" {
				t.Errorf("%s: got %q, %v, want %v", name, got, err, c.want)
			}
		}
	}
}

func TestBodyAbsent(t *testing.T) {
	t.Parallel()
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		q := gatehttp.Request{HTTP: &http.Request{Body: body}}
		if got, err := q.Body(10); len(got) > 0 || err != nil {
			t.Errorf("got %q, %v, want nothing and no error", got, err)
		}
		q.HTTP.ContentLength = 4
		if _, err := q.Body(10); err != gate.ErrBodyConsumed {
			t.Errorf("of a body that was taken away: got %v, want %v", err, gate.ErrBodyConsumed)
		}
	}
}

// TestBodyErrorReachesTheHandler: the handler reads what arrived, and then the error.
func TestBodyErrorReachesTheHandler(t *testing.T) {
	t.Parallel()
	reset := errors.New("reset")
	q, _ := withBody(io.MultiReader(strings.NewReader("bo"), iotest.ErrReader(reset)), 4)
	if _, err := q.Body(100); err != gate.ErrBodyBroken {
		t.Errorf("the gate got %v, want %v", err, gate.ErrBodyBroken)
	}
	for _, want := range []string{"bo", ""} {
		if got, err := io.ReadAll(q.HTTP.Body); string(got) != want || err != reset {
			t.Errorf("the handler got %q, %v, want %q, %v", got, err, want, reset)
		}
	}
}

func TestBodyAfterTheHandler(t *testing.T) {
	t.Parallel()
	q, src := withBody(strings.NewReader("body"), -1)
	if _, err := q.Body(1); err != gate.ErrBodyTooLarge {
		t.Fatalf("got %v, want %v", err, gate.ErrBodyTooLarge)
	}
	if _, err := io.ReadAll(q.HTTP.Body); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Body(100); err != gate.ErrBodyConsumed {
		t.Errorf("after the handler has read past the gate: got %v, want %v", err, gate.ErrBodyConsumed)
	}
	if err := q.HTTP.Body.Close(); err != nil || !src.closed {
		t.Errorf("Close: got %v, and the body closed %t, want no error and true", err, src.closed)
	}
	if _, err := q.HTTP.Body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
		t.Errorf("a closed body: got %v, want %v", err, http.ErrBodyReadAfterClose)
	}
}

// TestBodyIsTheGatesOwn: if a gate appends to the body, the handler does not see that.
func TestBodyIsTheGatesOwn(t *testing.T) {
	t.Parallel()
	q, _ := withBody(strings.NewReader("body"), 4)
	first, _ := q.Body(100)
	_ = append(first, "!!!!"...)
	second, err := q.Body(100)
	if string(second) != "body" || err != nil || cap(first) != len(first) {
		t.Errorf("got %q, %v, and room for %d more, want \"body\", no error, and room for none",
			second, err, cap(first)-len(first))
	}
}
