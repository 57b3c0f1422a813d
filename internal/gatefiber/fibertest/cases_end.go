package fibertest

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/internal/redistest"
)

// streamNobodyGets: the client was gone before there was a response.
func streamNobodyGets(t *testing.T, d Driver) {
	s := newSource()
	s.goOn()
	l := &leaving{t: t, over: func() bool { over, _ := s.state(); return over }}
	running := make(chan struct{})
	address := streamed(t, d, s, []gate.Gate{l}, func(x gatetest.Exchange) error {
		close(running)
		reset(d.RequestCtx(x))
		d.RequestCtx(x).SetBodyStream(s, 7)
		return nil
	})
	hangUp(t, address, running)
	l.partly(200)
}

// hangUp sends a request and resets the connection when it runs.
func hangUp(t testing.TB, address string, running <-chan struct{}) {
	conn := dial(t, address)
	fmt.Fprint(conn, "GET /detail HTTP/1.1\r\nHost: a\r\n\r\n")
	<-running
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// reset waits until the client of a request has reset the connection.
func reset(rc *fasthttp.RequestCtx) { _, _ = rc.Conn().Read(make([]byte, 1)) }

// streamDropped: fasthttp drops the request of a handler that was too late for
// TimeoutError, and one that takes over a connection that is broken. It closes nothing of
// them.
func streamDropped(t *testing.T, d Driver) {
	for name, c := range map[string]struct {
		set   func(rc *fasthttp.RequestCtx, s *source)
		outer func(rc *fasthttp.RequestCtx)
		gone  bool
	}{
		"TooLate": {
			func(rc *fasthttp.RequestCtx, s *source) { rc.SetBodyStream(s, 7) },
			func(rc *fasthttp.RequestCtx) { rc.TimeoutErrorWithCode("too late", 503) }, false,
		},
		"TakesOver": {
			func(rc *fasthttp.RequestCtx, _ *source) {
				reset(rc)
				rc.Hijack(func(net.Conn) { t.Error("the connection was taken over, want it broken") })
			}, func(*fasthttp.RequestCtx) {}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &leaving{t: t}
			slots, err := inflight.NewLocal("dropped", 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			running := make(chan struct{})
			address := streamed(t, d, newSource(), []gate.Gate{l, gate.Concurrency(slots, gate.Everyone, nil)}, func(x gatetest.Exchange) error {
				close(running)
				c.set(d.RequestCtx(x), newSource())
				return nil
			}, func(x gatetest.Exchange, next func() error) error {
				x.SetContext(d.RequestCtx(x)) // which gates must not keep
				err := next()
				c.outer(d.RequestCtx(x))
				return err
			})
			if c.gone {
				hangUp(t, address, running)
			} else if got := get(t, address, "/detail"); got != "503 too late" {
				t.Errorf("got %q, want \"503 too late\"", got)
			}
			redistest.Await(t, patience, "Leave", func() bool { runtime.GC(); return len(l.all()) > 0 })
			l.unseen()
			if n := slots.Stats().InFlight; n != 0 {
				t.Errorf("%d requests are in flight, want none", n)
			}
		})
	}
}

// streamLeavePanics: if a gate panics when it is left, the others are left as well, and
// the process goes on.
func streamLeavePanics(t *testing.T, d Driver) {
	panics := gatefake.Func(func(gate.Request) gate.Pass {
		return gate.Pass{Leave: func(*gate.Reply) { panic("fibertest: Leave panics") }}
	})
	compress := fasthttp.CompressHandler(func(*fasthttp.RequestCtx) {})
	for name, around := range map[string][]gatetest.Middleware{
		"Plain": nil,
		"Compressed": {func(x gatetest.Exchange, next func() error) error {
			err := next()
			compress(d.RequestCtx(x))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource()
			s.goOn()
			l := &leaving{t: t}
			address := streamed(t, d, s, []gate.Gate{l, panics}, func(x gatetest.Exchange) error {
				d.RequestCtx(x).SetBodyStream(s, -1)
				return nil
			}, around...)
			exchanged(t, address, "GET /detail HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
			l.once()
		})
	}
}

// takenOver: a gate is left when a connection that was taken over has ended, inner gates
// first.
func takenOver(t *testing.T, d Driver) {
	inner, outer := &leaving{t: t}, &leaving{t: t}
	outer.over = func() bool { return len(inner.all()) == 1 }
	talking, end := make(chan struct{}), make(chan struct{})
	address := streamed(t, d, newSource(), []gate.Gate{outer, inner}, func(x gatetest.Exchange) error {
		d.RequestCtx(x).Hijack(func(conn net.Conn) {
			close(talking)
			<-end
			_, _ = io.WriteString(conn, "end")
		})
		return x.Send(101, "")
	})
	conn := dial(t, address)
	fmt.Fprint(conn, "GET /detail HTTP/1.1\r\nHost: a\r\n\r\n")
	<-talking
	inner.none()
	outer.none()
	close(end)
	if got, err := io.ReadAll(conn); !strings.HasSuffix(string(got), "end") || err != nil {
		t.Errorf("got %q, %v, want it to end with \"end\"", got, err)
	}
	inner.partly(0)
	outer.partly(0)
}
