package gatetest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait. It is long enough for a busy machine; a test that passes
// never waits for it.
func patience() time.Duration {
	if testing.Short() {
		return 10 * time.Second
	}
	return time.Minute
}

// lasting is the lease of locks, claims and reservations. Their budget is a third of the
// lease at most: with a shorter lease, it would be less than patience.
func lasting() time.Duration { return 4 * patience() }

// client speaks HTTP/1.1 on one connection and changes nothing on the way: it cleans no
// target, adds no field and follows no redirect. It has patience for each request.
type client struct {
	t     testing.TB
	conn  net.Conn
	in    *bufio.Reader
	asked string // the target of the last request
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience())
	if err != nil {
		t.Fatalf("waited for a connection to the server: %v", err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience()))
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// write sends a request head, with lines as further fields, and body as it is.
func (c *client) write(method, target, body string, lines ...string) error {
	var raw strings.Builder
	fmt.Fprintf(&raw, "%s %s HTTP/1.1\r\n", method, target)
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Host:") }) {
		raw.WriteString("Host: example.com\r\n")
	}
	for _, line := range lines {
		raw.WriteString(line + "\r\n")
	}
	raw.WriteString("\r\n" + body)
	c.asked = target
	_ = c.conn.SetDeadline(time.Now().Add(patience()))
	_, err := io.WriteString(c.conn, raw.String())
	return err
}

// read reads a final response to its end.
func (c *client) read(method string) (answer, error) {
	for {
		response, err := http.ReadResponse(c.in, &http.Request{Method: method})
		if err != nil {
			return answer{}, fmt.Errorf("waited for the answer to %s %s: %w", method, c.asked, err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return answer{}, fmt.Errorf("waited for the rest of the answer to %s %s after %.40q: %w", method, c.asked, body, err)
		}
		if response.StatusCode >= 200 {
			return answer{response.StatusCode, response.Header, string(body)}, nil
		}
	}
}

// try sends a request and reads the response.
func (c *client) try(method, target, body string, lines ...string) (answer, error) {
	if err := c.write(method, target, body, lines...); err != nil {
		return answer{}, err
	}
	return c.read(method)
}

func (c *client) do(method, target string, lines ...string) answer {
	c.t.Helper()
	a, err := c.try(method, target, "", lines...)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// post sends a body with its length.
func (c *client) post(target, body string, lines ...string) answer {
	c.t.Helper()
	a, err := c.try("POST", target, body, append(lines, fmt.Sprintf("Content-Length: %d", len(body)))...)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// postChunked sends a body in chunks, without its length.
func (c *client) postChunked(target, body string, lines ...string) answer {
	c.t.Helper()
	a, err := c.try("POST", target, chunked(body), append(lines, "Transfer-Encoding: chunked")...)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func chunked(body string) string {
	var chunks strings.Builder
	for chunk := range slices.Chunk([]byte(body), 1000) {
		fmt.Fprintf(&chunks, "%x\r\n%s\r\n", len(chunk), chunk)
	}
	return chunks.String() + "0\r\n\r\n"
}

// get sends one request on a connection of its own.
func get(t testing.TB, address, target string, lines ...string) answer {
	t.Helper()
	return dial(t, address).do("GET", target, lines...)
}

// answer is a response as the client got it.
type answer struct {
	status int
	header http.Header
	body   string
}

// is fails the test unless the answer has this status and body, and exactly these header
// lines, apart from the fields that the contract leaves open.
func (a answer) is(t testing.TB, status int, body string, lines ...string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Errorf("got %d %q, want %d %q", a.status, a.body, status, body)
	}
	if got, want := visible(a.header), sorted(lines); !slices.Equal(got, want) {
		t.Errorf("got the header lines\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// open are the fields that the contract leaves to the server.
var open = []string{"Connection", "Content-Length", "Date", "Keep-Alive", "Server", "Trailer", "Transfer-Encoding"}

// visible lists the lines of a header that adapters must agree on, sorted by
// field, the lines of one field in order.
func visible(h http.Header) []string {
	var lines []string
	for name, values := range h {
		if !slices.Contains(open, name) {
			for _, value := range values {
				lines = append(lines, name+": "+value)
			}
		}
	}
	return sorted(lines)
}

func sorted(lines []string) []string {
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, ":")
		nameB, _, _ := strings.Cut(b, ":")
		return strings.Compare(nameA, nameB)
	})
	return lines
}
