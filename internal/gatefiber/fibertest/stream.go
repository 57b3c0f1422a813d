package fibertest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/redistest"
)

// source is the stream of a body. It has a first part and, when more is closed, a second
// part or an error.
type source struct {
	first, second string
	fails         error
	panics        bool
	endless       bool // the first part again and again

	reading chan struct{} // gets one when the second part is asked for
	more    chan struct{}
	goOn    func() // closes more, once

	mu        sync.Mutex
	reads     int
	over      bool
	closed    int
	wroteTo   bool
	closedFor error // what CloseWithError was told
}

func newSource() *source {
	s := &source{first: "one ", second: "two", reading: make(chan struct{}, 1), more: make(chan struct{})}
	s.goOn = sync.OnceFunc(func() { close(s.more) })
	return s
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	s.reads++
	n := s.reads
	s.mu.Unlock()
	switch {
	case n == 1 || s.endless:
		return copy(p, s.first), nil
	case n == 2:
		s.reading <- struct{}{}
		<-s.more
		if s.panics {
			panic("fibertest: a stream panics")
		}
		if s.fails == nil {
			return copy(p, s.second), nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.fails != nil {
		return 0, s.fails
	}
	return 0, io.EOF
}

func (s *source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	s.over = true
	return nil
}

// isRead waits until the second part is asked for.
func (s *source) isRead(t testing.TB) {
	t.Helper()
	select {
	case <-s.reading:
	case <-time.After(patience):
		t.Fatalf("gave up after %v: waited for the stream to be read", patience)
	}
}

// state reports whether the source was read to its end or closed, and how often it was
// closed.
func (s *source) state() (over bool, closed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over, s.closed
}

// cause is the error for which the source was closed.
func (s *source) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closedFor
}

// used says how fasthttp has used the source.
func (s *source) used() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf(" closed %d times for %v, written to %t", s.closed, s.closedFor, s.wroteTo)
}

// leaving is a gate. It keeps what its Leave was called with, and what was true then.
type leaving struct {
	t    testing.TB
	over func() bool // nil for what is always true

	mu    sync.Mutex
	calls []leave
}

type leave struct {
	reply *gate.Reply
	over  bool
}

func (l *leaving) Enter(gate.Request) gate.Pass {
	return gate.Pass{Capture: 100, Leave: func(r *gate.Reply) {
		over := l.over == nil || l.over()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calls = append(l.calls, leave{r, over})
	}}
}

func (l *leaving) all() []leave {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// none fails the test if Leave was called.
func (l *leaving) none() {
	l.t.Helper()
	if n := len(l.all()); n != 0 {
		l.t.Errorf("Leave had been called %d times before the response had ended, want none", n)
	}
}

// once waits for Leave. It fails the test if Leave was called more than once, or before
// what it waits for was over.
func (l *leaving) once() *gate.Reply {
	l.t.Helper()
	redistest.Await(l.t, patience, "Leave", func() bool { return len(l.all()) > 0 })
	calls := l.all()
	if len(calls) != 1 || !calls[0].over {
		l.t.Errorf("Leave was called with %+v, want it called once, when the stream was over", calls)
	}
	return calls[0].reply
}

// partly fails the test unless Leave was called once, with this status and no body.
func (l *leaving) partly(status int) {
	l.t.Helper()
	if r := l.once(); r == nil || r.Status != status || len(r.Body) > 0 || !r.Partial {
		l.t.Errorf("Leave saw %+v, want a partial %d without a body", r, status)
	}
}

// unseen fails the test unless Leave was called once, with nil.
func (l *leaving) unseen() {
	l.t.Helper()
	if r := l.once(); r != nil {
		l.t.Errorf("Leave saw %+v, want nil", r)
	}
}

// writingTo is a source that writes itself.
type writingTo struct{ *source }

func (s writingTo) WriteTo(w io.Writer) (int64, error) {
	s.mu.Lock()
	s.wroteTo = true
	s.mu.Unlock()
	return io.Copy(w, struct{ io.Reader }{s.source})
}

// closingWithError is a source that is closed as the answers to requests are that a client
// of fasthttp has sent.
type closingWithError struct{ s *source }

func (c closingWithError) Read(p []byte) (int, error) { return c.s.Read(p) }

func (c closingWithError) CloseWithError(err error) error {
	c.s.mu.Lock()
	c.s.closedFor = err
	c.s.mu.Unlock()
	return c.s.Close()
}

// longFile is a file that fits into no buffers of a connection.
func longFile(t testing.TB) (path, content string) {
	t.Helper()
	content = strings.Repeat("0123456789abcdef", 1<<20)
	path = filepath.Join(t.TempDir(), "long.txt")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

var errBroken = errors.New("fibertest: a stream breaks off")
