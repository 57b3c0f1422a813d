package hertzlimit_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"
	"github.com/cloudwego/hertz/pkg/common/hlog"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/hertzlimit"
)

func TestMain(m *testing.M) {
	hlog.SetLevel(hlog.LevelFatal) // it logs each server, and each panic that is recovered
	os.Exit(m.Run())
}

// entering is a gate made of a function.
type entering func(gate.Request) gate.Pass

func (f entering) Enter(q gate.Request) gate.Pass { return f(q) }

// told is a gate that captures 100 bytes and reports what Leave is called with.
func told(left chan<- *gate.Reply) gate.Gate {
	return entering(func(gate.Request) gate.Pass {
		return gate.Pass{Capture: 100, Leave: func(r *gate.Reply) { left <- r }}
	})
}

// serving serves an engine.
func serving(t testing.TB, register func(h *server.Hertz), opts ...config.Option) (address string) {
	t.Helper()
	h, address := listen(t, opts)
	register(h)
	go func() { _ = h.Run() }()
	return address
}

// behind serves /detail with a handler behind gates, outermost first.
func behind(t testing.TB, handler app.HandlerFunc, gates []gate.Gate, opts ...config.Option) (address string) {
	t.Helper()
	return serving(t, func(h *server.Hertz) {
		for _, g := range gates {
			h.Use(hertzlimit.Middleware(g))
		}
		h.Any("/detail", handler)
	}, opts...)
}

func ok(_ context.Context, c *app.RequestContext) { c.String(http.StatusOK, "ok") }

const patience = time.Minute

func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// answers sends requests on one connection, one after the other, and returns the answers.
// Fewer come back if the server closes the connection.
func answers(t testing.TB, address string, requests ...string) (all []string) {
	t.Helper()
	conn := dial(t, address)
	in := bufio.NewReader(conn)
	for _, request := range requests {
		go func() { _, _ = io.WriteString(conn, request) }() // the server may stop reading
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			return all
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return append(all, "broken off: "+string(body))
		}
		all = append(all, response.Status+" "+string(body))
	}
	return all
}

// next waits for what a gate or a handler reports.
func next[T any](t testing.TB, what string, reports <-chan T) (report T) {
	t.Helper()
	select {
	case report = <-reports:
	case <-time.After(patience):
		t.Fatalf("gave up after %v: waited for %s", patience, what)
	}
	return report
}

func post(length int, body string) string {
	return "POST /detail HTTP/1.1\r\nHost: a\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n" + body
}

const (
	get     = "GET /detail HTTP/1.1\r\nHost: a\r\n\r\n"
	chunked = "POST /detail HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
)

func long(n int) string { return strings.Repeat("x", n) }
