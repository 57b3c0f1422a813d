package gatetest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// expecting is a client that waits for 100 Continue before it sends a body.
type expecting struct{ *client }

// head sends the header of a request, and returns the status of the first answer.
func (c expecting) head(target string, lines ...string) (first int) {
	c.t.Helper()
	if err := c.write("POST", target, "", append(lines, "Expect: 100-continue", `Idempotency-Key: "1"`)...); err != nil {
		c.t.Fatal(err)
	}
	return c.status()
}

func (c expecting) status() int {
	c.t.Helper()
	response, err := http.ReadResponse(c.in, &http.Request{Method: "POST"})
	if err != nil {
		c.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// expectContinue: a body whose declared length is over MaxBody is refused before the
// client sends it. If the server asks for the body by itself, before any gate, it is
// refused after it was sent. The bytes of the body are never taken for another request.
func expectContinue(t *testing.T, d Driver) {
	const max = 100
	small := &gate.BodyOptions{MaxBody: max}
	guard := newGuard(t, d, idempotency.Options{})
	route := func(pattern string, g gate.Gate) Route {
		return Route{Method: "POST", Pattern: pattern, Gates: []gate.Gate{g}, Handler: say(200, "ok")}
	}
	address := d.Serve(t, App{Routes: []Route{
		route("/form", gate.RateLimit(perHour(t, "form", 1000), gate.ByForm("a", small), nil)),
		route("/json", gate.RateLimit(perHour(t, "json", 1000), gate.ByJSON("/a", small), nil)),
		route("/once", gate.Idempotent(guard, gate.Everyone, &gate.IdempotentOptions{MaxBody: max})),
		{Method: "POST", Pattern: "/endpoint", Endpoint: serve(func(q gate.Request) gate.Reply {
			if _, err := q.Body(max); err != nil {
				return gate.Reply{Status: 413}
			}
			return gate.Reply{Status: 200}
		})},
		{Method: "GET", Pattern: "/smuggled", Handler: never(t)},
	}})
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: example.com\r\n\r\n"
	long := smuggled + strings.Repeat("x", max)
	for target, c := range map[string]struct{ kind, fits string }{
		"/form":     {"Content-Type: application/x-www-form-urlencoded", "a=1"},
		"/json":     {"Content-Type: application/json", `{"a":"1"}`},
		"/once":     {"Content-Type: text/plain", "a"},
		"/endpoint": {"Content-Type: text/plain", "a"},
	} {
		t.Run(target[1:], func(t *testing.T) {
			t.Parallel()
			declared := expecting{dial(t, address)}
			first := declared.head(target, c.kind, fmt.Sprintf("Content-Length: %d", len(long)))
			if want := 413; !d.BodyFirst && first != want {
				t.Errorf("a body that is too long was first answered with %d, want %d", first, want)
			}
			_, _ = io.WriteString(declared.conn, long) // like a client that did not wait
			if first == 100 && declared.status() != 413 {
				t.Error("a body that is too long got a 100 and was not refused after it, want a 413")
			}

			chunks := expecting{dial(t, address)}
			first = chunks.head(target, c.kind, "Transfer-Encoding: chunked")
			_, _ = io.WriteString(chunks.conn, chunked(long))
			if first == 100 {
				first = chunks.status()
			}
			if first != 413 {
				t.Errorf("a chunked body that is too long was answered with %d, want 413", first)
			}

			fits := expecting{dial(t, address)}
			first = fits.head(target, c.kind, fmt.Sprintf("Content-Length: %d", len(c.fits)))
			_, _ = io.WriteString(fits.conn, c.fits)
			if last := fits.status(); first != 100 || last != 200 {
				t.Errorf("a body that fits was answered with %d and %d, want 100 and 200", first, last)
			}
		})
	}
}
