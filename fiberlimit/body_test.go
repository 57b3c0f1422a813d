package fiberlimit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/internal/gatefake"
)

func respond(status int, body string) gate.Pass {
	return gate.Pass{Reply: &gate.Reply{Status: status, Body: []byte(body)}}
}

// say makes an endpoint that answers with a text about each request.
func say(text func(gate.Request) string) gate.Endpoint {
	return gatefake.Endpoint(func(q gate.Request) gate.Reply {
		return gate.Reply{Status: 200, Body: []byte(text(q))}
	})
}

// bodies is a gate that answers with what Body returns, asked twice.
func bodies(max int64) gate.Gate {
	return gatefake.Func(func(q gate.Request) gate.Pass {
		body, err := q.Body(max)
		again, errAgain := q.Body(max)
		if string(again) != string(body) || !errors.Is(errAgain, err) {
			return respond(500, fmt.Sprintf("asked again: %q %v", again, errAgain))
		}
		return respond(200, fmt.Sprintf("%d %v", len(body), err))
	})
}

// exchanged writes raw on one connection, closes that direction, and returns
// the status and body of each response.
func exchanged(t *testing.T, address, raw string) (answers []string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	// A server that closes early may reset the connection while this goes on.
	_, _ = io.WriteString(conn, raw)
	_ = conn.(*net.TCPConn).CloseWrite()
	for in := bufio.NewReader(conn); ; {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			return answers
		}
		body, _ := io.ReadAll(response.Body)
		answers = append(answers, fmt.Sprintf("%d %s", response.StatusCode, body))
	}
}

// answered is like exchanged, of one request that comes in pieces, and the
// connection stays open.
func answered(t *testing.T, address, raw string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	header, body, _ := strings.Cut(raw, "\r\n\r\n")
	for _, piece := range append([]string{header + "\r\n\r\n"}, strings.Split(body, "")...) {
		if _, err := io.WriteString(conn, piece); err != nil {
			break // the server has answered, and said why
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, answer)
}

func posting(length int, body string) string {
	return fmt.Sprintf("POST /detail HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n%s", length, body)
}

func TestStreamedBodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	address := serve(t, fiber.Config{StreamRequestBody: true, DisableStartupMessage: true}, gatetest.App{
		Gates: []gate.Gate{bodies(1 << 20)},
	})
	for name, raw := range map[string]string{
		"EndsEarly": posting(200_000, strings.Repeat("x", 100_000)),
		"ChunksMalformed": "POST /detail HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"5\r\nthese\r\nno chunk\r\n",
		"ChunksEndEarly": "POST /detail HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"5\r\nthese\r\n",
		"NoChunks": "POST /detail HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := "200 0 " + gate.ErrBodyBroken.Error()
			if got := exchanged(t, address, raw); len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestStreamedBodyThatOthersHaveRead(t *testing.T) {
	t.Parallel()
	address := serve(t, fiber.Config{StreamRequestBody: true, DisableStartupMessage: true}, gatetest.App{
		Around: []gatetest.Middleware{func(x gatetest.Exchange, next func() error) error {
			if _, err := x.Body(); err != nil {
				t.Error(err)
			}
			return next()
		}},
		Gates: []gate.Gate{bodies(1 << 20)},
	})
	want := "200 0 " + gate.ErrBodyConsumed.Error()
	const chunked = "POST /detail HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, raw := range map[string]string{
		"Length":   posting(4, "body"),
		"Chunked":  chunked + "4\r\nbody\r\n0\r\n\r\n",
		"NoChunks": chunked + "0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The client says nothing more and stays: to read on would wait for it.
			if got := answered(t, address, raw); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestStreamedBodyThatOthersHaveBegunToRead(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{StreamRequestBody: true, DisableStartupMessage: true})
	app.Post("/detail", func(c *fiber.Ctx) error {
		if _, err := io.ReadFull(c.Context().RequestBodyStream(), make([]byte, 4)); err != nil {
			return err
		}
		return c.Next()
	}, fiberlimit.Middleware(bodies(1<<20)))
	want := "200 0 " + gate.ErrBodyConsumed.Error()
	raw := "POST /detail HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n6\r\na: b c\r\n0\r\n\r\n"
	if got := answered(t, listening(t, app), raw); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStreamedBodyThatNobodyHasRead(t *testing.T) {
	t.Parallel()
	address := serve(t, fiber.Config{StreamRequestBody: true, DisableStartupMessage: true}, gatetest.App{
		Gates: []gate.Gate{bodies(1 << 20)},
	})
	const chunked = "POST /detail HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n"
	for _, raw := range []string{
		chunked + "\r\n0\r\n\r\n",
		chunked + "X-Zero: 0\r\n\r\n0\r\n\r\n",
	} {
		if got := answered(t, address, raw); got != "200 0 <nil>" {
			t.Errorf("%q: got %q, want \"200 0 <nil>\"", raw, got)
		}
	}
}

// A refused request's body, unread, must not become the next request.
func TestRefusedStreamIsNoRequest(t *testing.T) {
	t.Parallel()
	address := serve(t, fiber.Config{StreamRequestBody: true, DisableStartupMessage: true}, gatetest.App{
		Gates: []gate.Gate{gatefake.Func(func(q gate.Request) gate.Pass { return respond(429, q.Path()) })},
	})
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: example.com\r\n\r\n"
	ahead := strings.Repeat("x", 8<<10) // what fasthttp reads of a body by itself
	for name, raw := range map[string]string{
		"Length":  posting(100_000, ahead+smuggled),
		"Chunked": "POST /detail HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := exchanged(t, address, raw); len(got) != 1 || got[0] != "429 /detail" {
				t.Errorf("got the responses %q, want one", got)
			}
		})
	}
}

// An ErrorHandler that fails makes what Fiber makes of it: a 500.
func TestErrorHandlerThatFails(t *testing.T) {
	t.Parallel()
	var seen *gate.Reply
	app := fiber.New(fiber.Config{
		DisableStartupMessage: true,
		ErrorHandler:          func(*fiber.Ctx, error) error { return errors.New("the error handler's own") },
	})
	app.Get("/detail", fiberlimit.Middleware(gatefake.Func(func(gate.Request) gate.Pass {
		return gate.Pass{Capture: 100, Leave: func(r *gate.Reply) { seen = r }}
	})), func(*fiber.Ctx) error { return errors.New("the handler's") })
	address := listening(t, app)
	got := exchanged(t, address, "GET /detail HTTP/1.1\r\nHost: example.com\r\n\r\n")
	if len(got) != 1 || got[0] != "500 Internal Server Error" {
		t.Fatalf("got %q, want one answer, \"500 Internal Server Error\"", got)
	}
	if seen == nil || seen.Status != 500 || string(seen.Body) != "Internal Server Error" {
		t.Errorf("Leave saw %+v, want 500 \"Internal Server Error\"", seen)
	}
}

// c.Send of middleware outside keeps its body apart from what is sent here.
func TestReplyReplacesABodyThatWasSent(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.Use(func(c *fiber.Ctx) error {
		_ = c.Send([]byte("of middleware"))
		return c.Next()
	})
	app.Get("/", told(func(gate.Request) string { return "of the gate" }))
	if got := ask(t, app, "/"); got != "of the gate" {
		t.Errorf("got %q, want \"of the gate\"", got)
	}
}

// What the package's documentation says of Expect: 100-continue.
func TestLongBodyIsRefusedBeforeItComes(t *testing.T) {
	t.Parallel()
	const maxBody = 1000
	for _, c := range []struct {
		name   string
		length int
		want   string
	}{
		{"TooLong", maxBody + 1, "HTTP/1.1 413 "}, {"Fits", maxBody, "HTTP/1.1 100 "}, {"Unset", maxBody + 1, "HTTP/1.1 100 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			app := fiber.New(fiber.Config{DisableStartupMessage: true})
			if c.name != "Unset" {
				app.Server().HeaderReceived = func(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
					if h.ContentLength() > maxBody {
						h.Del(fiber.HeaderExpect)
						c.MaxRequestBodySize = maxBody
					}
					return c
				}
			}
			app.Post("/detail", fiberlimit.Middleware(bodies(maxBody)))
			conn, err := net.Dial("tcp", listening(t, app))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
			fmt.Fprintf(conn, "POST /detail HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", c.length)
			first := make([]byte, len(c.want))
			if _, err := io.ReadFull(conn, first); err != nil || string(first) != c.want {
				t.Errorf("first came %q, %v, want %q", first, err, c.want)
			}
		})
	}
}
