package gatetest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// replying serves one route, /detail, whose gate answers with reply.
func replying(t *testing.T, d Driver, reply gate.Reply) (address string) {
	return d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail", Handler: never(t),
		Gates: []gate.Gate{pass(gate.Pass{Reply: &reply})},
	}}})
}

func replyInstead(t *testing.T, d Driver) {
	address := d.Serve(t, App{
		Gates: []gate.Gate{pass(gate.Pass{Header: []gate.Field{{Name: "X-Global", Value: "1"}}})},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Handler: never(t),
			Gates: []gate.Gate{pass(gate.Pass{
				Header: []gate.Field{{Name: "X-List", Value: "pass", Add: true}, {Name: "X-Single", Value: "pass"}},
				Reply: &gate.Reply{
					Status: 429,
					Header: []gate.Field{
						{Name: "Content-Type", Value: "application/problem+json"},
						{Name: "X-List", Value: "reply", Add: true},
						{Name: "X-Single", Value: "reply"},
						{Name: "Set-Cookie", Value: "a=1", Add: true},
						{Name: "Set-Cookie", Value: "b=2", Add: true},
					},
					Body: []byte(`{"status":429}`),
				},
				Leave: func(*gate.Reply) { t.Error("Leave was called after a Reply, want no call") },
			})},
		}},
	})
	c := dial(t, address)
	for range 3 {
		c.do("GET", "/detail").is(t, 429, `{"status":429}`,
			"Content-Type: application/problem+json",
			"Set-Cookie: a=1", "Set-Cookie: b=2",
			"X-Global: 1", "X-List: pass", "X-List: reply", "X-Single: reply")
	}
}

func replyGlobal(t *testing.T, d Driver) {
	inner := enter(func(gate.Request) gate.Pass {
		t.Error("a gate inside the one that replied was entered, want it left out")
		return gate.Pass{}
	})
	address := d.Serve(t, App{
		Gates:  []gate.Gate{pass(gate.Pass{Reply: &gate.Reply{Status: 403}}), inner},
		Routes: []Route{{Method: "GET", Pattern: "/detail", Gates: []gate.Gate{inner}, Handler: never(t)}},
	})
	get(t, address, "/detail").is(t, 403, "")
	get(t, address, "/nowhere").is(t, 403, "")
}

func replyHead(t *testing.T, d Driver) {
	address := replying(t, d, gate.Reply{
		Status: 409,
		Header: []gate.Field{{Name: "Content-Type", Value: plain}, {Name: "X-Reply", Value: "1"}},
		Body:   []byte("in flight"),
	})
	lines := []string{"Content-Type: " + plain, "X-Reply: 1"}
	c := dial(t, address)
	got := c.do("GET", "/detail")
	got.is(t, 409, "in flight", lines...)
	head := c.do("HEAD", "/detail")
	head.is(t, 409, "", lines...)
	for method, a := range map[string]answer{"GET": got, "HEAD": head} {
		if length := a.header.Get("Content-Length"); length != strconv.Itoa(len("in flight")) {
			t.Errorf("%s has the Content-Length %q, want that of the body", method, length)
		}
	}
	c.do("GET", "/detail").is(t, 409, "in flight", lines...)
}

func replyWithoutBody(t *testing.T, d Driver) {
	for _, status := range []int{204, 304} {
		c := dial(t, d.Serve(t, App{Routes: []Route{{
			Method: "GET", Pattern: "/detail", Handler: never(t),
			Around: []Middleware{func(x Exchange, next func() error) error {
				x.SetHeader("Content-Length", "16")
				return next()
			}},
			Gates: []gate.Gate{pass(gate.Pass{Reply: &gate.Reply{
				Status: status,
				Header: []gate.Field{{Name: "Etag", Value: `"1"`}, {Name: "Content-Length", Value: "16"}},
				Body:   []byte("must not be sent"),
			}})},
		}}}))
		for _, method := range []string{"GET", "HEAD", "GET"} {
			a := c.do(method, "/detail")
			a.is(t, status, "", `Etag: "1"`)
			if length := a.header.Get("Content-Length"); length != "" {
				t.Errorf("%s: a %d has the Content-Length %s, want none", method, status, length)
			}
		}
	}
}

func replyAsItIs(t *testing.T, d Driver) {
	t.Run("NoTypeGuessed", func(t *testing.T) {
		get(t, replying(t, d, gate.Reply{Status: 200, Body: []byte("success")}), "/detail").is(t, 200, "success")
	})
	t.Run("OwnFraming", func(t *testing.T) {
		c := dial(t, replying(t, d, gate.Reply{
			Status: 200,
			Header: []gate.Field{
				{Name: "Content-Type", Value: plain},
				{Name: "Content-Length", Value: "999"},
				{Name: "Transfer-Encoding", Value: "chunked"},
			},
			Body: []byte("success"),
		}))
		for range 2 {
			c.do("GET", "/detail").is(t, 200, "success", "Content-Type: "+plain)
		}
	})
	t.Run("Status", func(t *testing.T) {
		for said, sent := range map[int]int{0: 200, 42: 500, 103: 500, 200: 200, 599: 599, 1000: 500} {
			get(t, replying(t, d, gate.Reply{Status: said}), "/detail").is(t, sent, "")
		}
	})
	t.Run("NoFieldInAnother", func(t *testing.T) {
		get(t, replying(t, d, gate.Reply{
			Status: 200,
			Header: []gate.Field{
				{Name: "X-Value", Value: "1\r\nX-Smuggled: 2"},
				{Name: "X-List", Value: "1\nX-Smuggled: 2", Add: true},
				{Name: "X-Name: 1\r\nX-Smuggled", Value: "2"},
				{Name: "X-Name: 1\nX-Smuggled", Value: "2", Add: true},
			},
		}), "/detail").is(t, 200, "", "X-Value: 1  X-Smuggled: 2", "X-List: 1 X-Smuggled: 2")
	})
}

// replyUnread: if a request was refused with its body unread, the body is not taken for
// another request on the connection.
func replyUnread(t *testing.T, d Driver) {
	for _, size := range []int{1, 10_000} {
		body := strings.Repeat("GET /smuggled HTTP/1.1\r\nHost: example.com\r\n\r\n", size)
		address := d.Serve(t, App{Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			return gate.Pass{Reply: &gate.Reply{Status: 403, Body: []byte(q.Path())}}
		})}})
		for _, send := range []func(*client) error{
			func(c *client) error {
				return c.write("POST", "/refused", body, "Content-Length: "+strconv.Itoa(len(body)))
			},
			func(c *client) error {
				return c.write("POST", "/refused", chunked(body), "Transfer-Encoding: chunked")
			},
		} {
			c := dial(t, address)
			go func() { _ = send(c) }() // the server may stop reading before all is sent
			a, err := c.read("POST")
			if err != nil && size > 1 {
				continue // a server that does not read on may reset the connection
			}
			if err != nil || a.body != "/refused" {
				t.Errorf("got %d %q, %v, want the refusal with the body /refused", a.status, a.body, err)
			}
			if a, err := c.try("GET", "/next", ""); err == nil && a.body != "/next" {
				t.Errorf("a request after one that was refused unread got the answer to %q, want that to /next",
					a.body)
			}
		}
	}
}
