package gatetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// twoParts is a handler that streams two parts. The second waits until more is closed.
func twoParts(more <-chan struct{}) Handler {
	return func(x Exchange) error {
		x.SetHeader("Content-Type", plain)
		return x.Stream(202, func(yield func(string) bool) {
			if !yield("one ") {
				return
			}
			<-more
			yield("two")
		})
	}
}

// begun is a response whose first part a client has read.
type begun struct {
	response *http.Response
	body     *bufio.Reader
}

// begin asks for a stream of two parts, and reads the first.
func (c *client) begin(method string, lines ...string) (begun, error) {
	if err := c.write(method, "/detail", "", lines...); err != nil {
		return begun{}, err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return begun{}, err
	}
	body := bufio.NewReader(response.Body)
	first, err := body.ReadString(' ')
	if err == nil && first != "one " {
		c.t.Errorf("the first part is %q, want \"one \"", first)
	}
	return begun{response, body}, err
}

// rest reads the second part.
func (b begun) rest(t testing.TB) answer {
	t.Helper()
	rest, err := io.ReadAll(b.body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{b.response.StatusCode, b.response.Header, "one " + string(rest)}
}

// leaveStream: what a handler flushes reaches the client before the handler has ended,
// also behind a gate that reads the response. The gate is left when the whole body was
// written.
func leaveStream(t *testing.T, d Driver) {
	more := make(chan struct{})
	address, l := capturing(t, d, 1<<10, twoParts(more))
	l.expect(1)
	b, err := dial(t, address).begin("GET")
	early := len(l.all())
	close(more)
	if err != nil {
		t.Fatal(err)
	}
	if early != 0 {
		t.Errorf("in mid-stream Leave had been called %d times, want it called when the stream has ended", early)
	}
	lines := []string{"Content-Type: " + plain, "X-Gate: 1"}
	b.rest(t).is(t, 202, "one two", lines...)
	r := l.await(1)[0]
	partial(t, r)
	a := seen(t, r)
	a.is(t, 202, a.body, lines...)
	if a.body != "" && a.body != "one two" {
		t.Errorf("Leave saw the body %q, want \"one two\" or none", a.body)
	}
}

// streamHeld: what a gate holds for a request, it holds until the whole body was written.
// What the request used is asked for after that.
func streamHeld(t *testing.T, d Driver) {
	for name, made := range map[string]func(testing.TB, Driver) held{
		"RateLimit": func(t testing.TB, _ Driver) held {
			l := perHour(t, "tokens", 1000)
			return held{gate.RateLimit(l, everyone, &gate.RateLimitOptions{
				Cost: func(gate.Request) (int64, error) { return 300, nil },
				Settle: func(q gate.Request, _ *gate.Reply) int64 {
					parts, _ := q.Context().Value(contextKey("parts")).(*atomic.Int64)
					return 100 * parts.Load()
				},
			}), func() any { return used(t, l) }, int64(300), int64(200)}
		},
		"Concurrency": func(t testing.TB, _ Driver) held {
			c := atOnce(t, 1)
			return held{gate.Concurrency(c, everyone, nil), func() any { return c.Stats().InFlight }, 1, 0}
		},
		"Exclusive": func(t testing.TB, d Driver) held {
			l := newLocker(t, d)
			return held{gate.Exclusive(l, everyone, nil), func() any { return l.Stats().Holding }, 1, 0}
		},
		"Idempotent": func(t testing.TB, d Driver) held {
			g := newGuard(t, d, idempotency.Options{})
			scope := gate.IdempotencyScope("everyone", "POST", "/detail", "1")
			return held{gate.Idempotent(g, gate.Everyone, nil), func() any {
				r, err := g.Inspect(t.Context(), scope)
				if err != nil {
					t.Fatal(err)
				}
				return r.State
			}, idempotency.Pending, idempotency.NoResult}
		},
		"Reserve": func(t testing.TB, d Driver) held {
			s := newStock(t, d, 1)
			item := func(gate.Request) (string, error) { return phone, nil }
			return held{gate.Reserve(s, item, everyone, nil), func() any {
				l, err := s.Left(t.Context(), phone)
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprintf("%d held and %d sold", l.Held, l.Sold)
			}, "1 held and 0 sold", "0 held and 1 sold"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var parts atomic.Int64
			more := make(chan struct{})
			h := made(t, d)
			address := d.Serve(t, App{Routes: []Route{{
				Method: "POST", Pattern: "/detail", Gates: []gate.Gate{h.gate},
				Around: []Middleware{func(x Exchange, next func() error) error {
					x.SetContext(context.WithValue(x.Context(), contextKey("parts"), &parts))
					return next()
				}},
				Handler: func(x Exchange) error {
					return x.Stream(200, func(yield func(string) bool) {
						parts.Add(1)
						yield("one ")
						<-more
						parts.Add(1)
						yield("two")
					})
				},
			}}})
			b, err := dial(t, address).begin("POST", "Idempotency-Key: 1", "Content-Length: 0")
			mid := h.holds()
			close(more)
			if err != nil {
				t.Fatal(err)
			}
			if mid != h.mid {
				t.Errorf("in mid-stream the gate holds %v, want %v", mid, h.mid)
			}
			if a := b.rest(t); a.status != 200 || a.body != "one two" {
				t.Errorf("got %d %q, want 200 \"one two\"", a.status, a.body)
			}
			if end := h.holds(); end != h.end {
				t.Errorf("when the response has ended, the gate holds %v, want %v", end, h.end)
			}
		})
	}
}

// held is a gate, what it holds at the moment, and what it should hold in mid-stream and
// when the response has ended.
type held struct {
	gate     gate.Gate
	holds    func() any
	mid, end any
}
