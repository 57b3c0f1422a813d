package hertzlimit_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/ut"
	"github.com/cloudwego/hertz/pkg/network"
	"github.com/cloudwego/hertz/pkg/protocol/sse"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/hertzlimit"
)

// source is a stream that has one part, and then what then returns.
type source struct {
	then   func() (string, error)
	begun  bool
	closed chan struct{}
}

func (s *source) Read(p []byte) (int, error) {
	if !s.begun {
		s.begun = true
		return copy(p, "one "), nil
	}
	part, err := s.then()
	return copy(p, part), err
}

func (s *source) Close() error {
	close(s.closed)
	return nil
}

func streaming(s *source) app.HandlerFunc {
	return func(_ context.Context, c *app.RequestContext) { c.SetBodyStream(s, -1) }
}

// A stream that fails or panics is no answer.
func TestStreamThatFails(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func() (string, error){
		"Fails":  func() (string, error) { return "", errors.New("failed") },
		"Panics": func() (string, error) { panic("a stream panics") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner, outer := make(chan *gate.Reply, 1), make(chan *gate.Reply, 1)
			s := &source{then: then, closed: make(chan struct{})}
			address := behind(t, streaming(s), []gate.Gate{told(outer), told(inner)})
			answers(t, address, get)
			for _, left := range []chan *gate.Reply{inner, outer} {
				if reply := next(t, "Leave", left); reply != nil {
					t.Errorf("the gate saw %+v, want nothing", *reply)
				}
			}
			next(t, "the stream to be closed", s.closed)
		})
	}
}

// A stream whose length is known is sent with it.
func TestStreamOfKnownLength(t *testing.T) {
	t.Parallel()
	left := make(chan *gate.Reply, 1)
	address := behind(t, func(_ context.Context, c *app.RequestContext) {
		c.SetBodyStream(io.LimitReader(strings.NewReader("12345"), 4).(*io.LimitedReader), -1)
	}, []gate.Gate{told(left)})
	conn := dial(t, address)
	_, _ = io.WriteString(conn, get)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(response.Body); string(body) != "1234" || response.ContentLength != 4 || err != nil {
		t.Errorf("got %q with the length %d, %v, want \"1234\" and 4", body, response.ContentLength, err)
	}
	if reply := next(t, "Leave", left); reply == nil || !reply.Partial {
		t.Errorf("the gate saw %+v, want a reply that is partial", reply)
	}
}

// If the client goes away, the stream is closed and the gate is left.
func TestClientOfAStreamGoesAway(t *testing.T) {
	t.Parallel()
	slots, err := inflight.NewLocal("streams", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan *gate.Reply, 1)
	s := &source{then: func() (string, error) { return long(1 << 10), nil }, closed: make(chan struct{})}
	address := behind(t, streaming(s), []gate.Gate{told(left), gate.Concurrency(slots, gate.Everyone, nil)})
	conn := dial(t, address)
	_, _ = io.WriteString(conn, get)
	if _, err := conn.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if n := slots.Stats().InFlight; n != 1 {
		t.Errorf("while the stream is read, %d requests are in flight, want 1", n)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
	if reply := next(t, "Leave", left); reply == nil || reply.Status != http.StatusOK || !reply.Partial {
		t.Errorf("the gate saw %+v, want a partial 200", reply)
	}
	next(t, "the stream to be closed", s.closed)
	if n := slots.Stats().InFlight; n != 0 {
		t.Errorf("%d requests are in flight, want none", n)
	}
}

// If a gate panics when it is left, the others are left as well, with the answer, and the
// process goes on.
func TestGatePanicsAfterAStream(t *testing.T) {
	t.Parallel()
	left := make(chan *gate.Reply, 1)
	panics := entering(func(gate.Request) gate.Pass {
		return gate.Pass{Leave: func(*gate.Reply) { panic("Leave panics") }}
	})
	s := &source{then: func() (string, error) { return "", io.EOF }, closed: make(chan struct{})}
	address := behind(t, streaming(s), []gate.Gate{told(left), panics})
	answers(t, address, get)
	if reply := next(t, "Leave", left); reply == nil {
		t.Error("the gate outside saw nothing, want the answer")
	}
}

// A gate is left when a writer of the handler's is finalized: inner gates first, and after
// all that the handler has written. Server-sent events use such a writer.
func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	for name, closes := range map[string]bool{"Open": false, "Closed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			order := make(chan string, 3)
			noting := func(name string) gate.Gate {
				return entering(func(gate.Request) gate.Pass {
					return gate.Pass{Capture: 100, Leave: func(r *gate.Reply) {
						if r == nil || !r.Partial || r.Status != http.StatusOK {
							t.Errorf("the gate saw %+v, want a partial 200", r)
						}
						order <- name
					}}
				})
			}
			address := behind(t, func(_ context.Context, c *app.RequestContext) {
				w := sse.NewWriter(c)
				_ = w.WriteEvent("1", "tick", []byte("data"))
				if closes {
					_ = w.Close()
				}
				order <- "handler"
			}, []gate.Gate{noting("outer"), noting("inner")})
			if got := answers(t, address, get); len(got) != 1 || !strings.Contains(got[0], "data: data") {
				t.Errorf("got %q, want one answer with the event", got)
			}
			var got []string
			for range 3 {
				got = append(got, next(t, "the handler and Leave", order))
			}
			if want := []string{"handler", "inner", "outer"}; !slices.Equal(got, want) {
				t.Errorf("got the order %q, want %q", got, want)
			}
		})
	}
}

// setting is a writer that has SetBody, for which Hertz looks.
type setting struct {
	network.ExtWriter
	set string
}

func (s *setting) Write(p []byte) (int, error) { return len(p), nil }
func (s *setting) Flush() error                { return nil }
func (s *setting) Finalize() error             { return nil }
func (s *setting) SetBody(body []byte)         { s.set = string(body) }

func TestWriterKeepsSetBody(t *testing.T) {
	t.Parallel()
	left, w := make(chan *gate.Reply, 1), &setting{}
	h := server.New(server.WithDisablePrintRoute(true))
	h.Use(func(ctx context.Context, c *app.RequestContext) {
		c.Next(ctx)
		c.Response.SetBody([]byte("set"))
		_ = c.Response.GetHijackWriter().Finalize()
	})
	h.GET("/", hertzlimit.Middleware(told(left)), func(_ context.Context, c *app.RequestContext) { c.Response.HijackWriter(w) })
	ut.PerformRequest(h.Engine, "GET", "/", nil)
	if w.set != "set" {
		t.Errorf("the writer got the body %q, want \"set\"", w.set)
	}
	next(t, "Leave", left)
}

// If the client is gone before the function of Hijack runs, it never runs.
func TestConnectionThatIsNotTakenOver(t *testing.T) {
	t.Parallel()
	left, running, gone := make(chan *gate.Reply, 1), make(chan struct{}), make(chan struct{})
	address := behind(t, func(_ context.Context, c *app.RequestContext) {
		close(running)
		<-gone
		for { // until the client's reset has arrived
			if _, err := c.GetConn().Write([]byte("x")); err != nil {
				break
			}
			_ = c.GetConn().Flush()
		}
		c.Hijack(func(network.Conn) { t.Error("the connection was taken over, want it broken") })
	}, []gate.Gate{told(left)})
	conn := dial(t, address)
	_, _ = io.WriteString(conn, get)
	<-running
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
	close(gone)
	for deadline := time.Now().Add(patience); len(left) == 0; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("waited for Leave")
		}
	}
	if reply := <-left; reply != nil {
		t.Errorf("the gate saw %+v, want nothing", *reply)
	}
}
