package gatetest

import (
	"bufio"
	"io"
	"net/http"
	"testing"
)

// leaveStream: what a handler flushes reaches the client before the handler has ended,
// also behind a gate that reads the response.
func leaveStream(t *testing.T, d Driver) {
	arrived := make(chan struct{})
	address, l := capturing(t, d, 1<<10, func(x Exchange) error {
		x.SetHeader("Content-Type", plain)
		return x.Stream(202, func(yield func(string) bool) {
			if !yield("one ") {
				return
			}
			<-arrived
			yield("two")
		})
	})
	l.expect(1)
	c := dial(t, address)
	if err := c.write("GET", "/detail", ""); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		close(arrived)
		t.Fatal(err)
	}
	body := bufio.NewReader(response.Body)
	first, err := body.ReadString(' ')
	close(arrived)
	if err != nil || first != "one " {
		t.Fatalf("before the handler ended, the client got %q, %v, want \"one \" and no error", first, err)
	}
	rest, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{"Content-Type: " + plain, "X-Gate: 1"}
	answer{response.StatusCode, response.Header, first + string(rest)}.is(t, 202, "one two", lines...)
	r := l.await(1)[0]
	partial(t, r)
	a := seen(t, r)
	a.is(t, 202, a.body, lines...)
	if a.body != "" && a.body != "one two" {
		t.Errorf("Leave saw the body %q, want \"one two\" or none", a.body)
	}
}
