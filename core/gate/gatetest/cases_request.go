package gatetest

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// reporting serves an application whose gate replies with what report returns for the
// request. So no routing is involved.
func reporting(t testing.TB, d Driver, report func(gate.Request) string) (address string) {
	return d.Serve(t, App{
		Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			return gate.Pass{Reply: &gate.Reply{Status: 200, Body: []byte(report(q))}}
		})},
		Routes: []Route{{Method: "GET", Pattern: "/detail", Handler: never(t)}},
	})
}

// targets: path and query are as they were sent.
func targets(t *testing.T, d Driver) {
	address := reporting(t, d, func(q gate.Request) string { return q.Path() + " | " + q.RawQuery() })
	for target, want := range map[string]string{
		"/detail":                        "/detail | ",
		"/detail?":                       "/detail | ",
		"/detail?a=1&b=%20+&c":           "/detail | a=1&b=%20+&c",
		"/detail?a?b":                    "/detail | a?b",
		"/a%2Fb%20c/%C3%A9?x=%2F":        "/a%2Fb%20c/%C3%A9 | x=%2F",
		"/a%2fb":                         "/a%2fb | ",
		"//detail":                       "//detail | ",
		"/a//b/":                         "/a//b/ | ",
		"/a/./b/../c":                    "/a/./b/../c | ",
		"/a/%2e%2e/c":                    "/a/%2e%2e/c | ",
		"/semi;colon,comma":              "/semi;colon,comma | ",
		"http://example.com/detail?abs":  "/detail | abs",
		"http://example.com":             "/ | ",
		"http://example.com/a%2Fb/../c?": "/a%2Fb/../c | ",
	} {
		if a := get(t, address, target); a.status != 200 || a.body != want {
			t.Errorf("%s: got %d %q, want %q", target, a.status, a.body, want)
		}
	}
}

// rewritten: a gate does not see that middleware changed the path.
func rewritten(t *testing.T, d Driver) {
	reports := make(chan string, 16)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/users/{id}", Handler: say(200, "ok"),
		Around: []Middleware{func(x Exchange, next func() error) error {
			x.Rewrite("/rewritten")
			return next()
		}},
		Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			reports <- q.Path() + " | " + q.Route() + " | " + param(q, "id")
			return gate.Pass{}
		})},
	}}})
	get(t, address, "/users/a%20b").is(t, 200, "ok", "Content-Type: "+plain)
	if got, want := next(t, "the gate to report the path and the route", reports), "/users/a%20b | /users/{id} | a b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func hosts(t *testing.T, d Driver) {
	address := reporting(t, d, gate.Request.Host)
	for _, c := range []struct {
		want, target string
		lines        []string
	}{
		{"example.com", "/detail", nil},
		{"example.com:8080", "/detail", []string{"Host: example.com:8080"}},
		{"[::1]:8080", "/detail", []string{"Host: [::1]:8080"}},
		{"example.com", "/detail", []string{
			"X-Forwarded-Host: evil.example", "Forwarded: host=evil.example", "X-Original-Host: evil.example",
			"X-Host: evil.example", "X-Forwarded-Proto: https", "X-Forwarded-Server: evil.example",
		}},
		// RFC 9112 section 3.2.2: the host of the target, if it names one.
		{"absolute.example", "http://absolute.example/detail", []string{"Host: other.example"}},
	} {
		if a := get(t, address, c.target, c.lines...); a.body != c.want {
			t.Errorf("%s %q: got the host %q, want %q", c.target, c.lines, a.body, c.want)
		}
	}
}

func requestHeaders(t *testing.T, d Driver) {
	address := reporting(t, d, func(q gate.Request) string {
		var all []string
		for name, value := range q.Headers() {
			if strings.HasPrefix(name, "X-") || name == "Host" {
				all = append(all, name+"="+value)
			}
		}
		slices.SortStableFunc(all, func(a, b string) int {
			return strings.Compare(strings.SplitN(a, "=", 2)[0], strings.SplitN(b, "=", 2)[0])
		})
		return fmt.Sprintf("%q %q %q %q %q %q", q.Header("X-List"), q.Header("x-list"), q.Header("X-Empty"),
			q.Header("X-Missing"), q.Header("Host"), all)
	})
	a := get(t, address, "/detail", "X-List: 1", "x-single:  padded ", "X-LIST: 2, 3", "X-Empty:", "x-list: 1")
	const list = `["1" "2, 3" "1"]`
	want := list + " " + list + ` [""] [] [] ["X-Empty=" "X-List=1" "X-List=2, 3" "X-List=1" "X-Single=padded"]`
	if a.body != want {
		t.Errorf("got\n\t%s\nwant\n\t%s", a.body, want)
	}
}

// doubledFields: every line reaches the gate, also of the fields that a server keeps in a
// special place.
func doubledFields(t *testing.T, d Driver) {
	address := reporting(t, d, func(q gate.Request) string {
		_, form := gate.ByForm("a", nil)(q)
		_, agent := gate.ByHeader("User-Agent")(q)
		all := map[string][]string{}
		for name, value := range q.Headers() {
			all[name] = append(all[name], value)
		}
		var report strings.Builder
		fmt.Fprintln(&report, form)
		fmt.Fprintln(&report, agent)
		for _, name := range []string{"Content-Type", "User-Agent", "Cookie"} {
			fmt.Fprintf(&report, "%q %q\n", q.Header(name), all[name])
		}
		return report.String()
	})
	a := dial(t, address).post("/detail", "a=1",
		"Content-Type: application/x-www-form-urlencoded", "content-type: application/json",
		"User-Agent: 1", "user-agent: 2", "Cookie: a=1; b=2", "cookie: a=3")
	const want = `gate: refused: The request has more than one Content-Type
gate: refused: The request has more than one header field User-Agent
["application/x-www-form-urlencoded" "application/json"] ["application/x-www-form-urlencoded" "application/json"]
["1" "2"] ["1" "2"]
["a=1; b=2" "a=3"] ["a=1; b=2" "a=3"]
`
	if a.body != want {
		t.Errorf("got\n%s\nwant\n%s", a.body, want)
	}
}

// linesInOrder: the lines of a field keep their order when middleware removes other
// fields. The last line of X-Forwarded-For is the one of the nearest proxy.
func linesInOrder(t *testing.T, d Driver) {
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail", Handler: never(t),
		Around: []Middleware{func(x Exchange, next func() error) error {
			x.DelRequestHeader("X-First")
			x.DelRequestHeader("X-Second")
			return next()
		}},
		Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			var every []string
			for name, line := range q.Headers() {
				if name == "X-Forwarded-For" {
					every = append(every, line)
				}
			}
			return gate.Pass{Reply: &gate.Reply{Status: 200, Body: fmt.Appendf(nil, "%q %q", q.Header("X-Forwarded-For"), every)}}
		})},
	}}})
	a := get(t, address, "/detail", "X-First: a", "X-Forwarded-For: 1.1.1.1", "X-Second: b", "X-Forwarded-For: 2.2.2.2", "X-Forwarded-For: 3.3.3.3")
	if want := `["1.1.1.1" "2.2.2.2" "3.3.3.3"] ["1.1.1.1" "2.2.2.2" "3.3.3.3"]`; a.body != want {
		t.Errorf("got %d %s, want %s", a.status, a.body, want)
	}
}

// queries: the gate keys by what the handler reads. A "#" in the target, which no client
// should send, is part of the query for both or for neither.
func queries(t *testing.T, d Driver) {
	keys := make(chan string, 16)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail",
		Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			key, err := gate.ByQuery("q")(q)
			if err != nil {
				t.Error(err)
			}
			keys <- key
			return gate.Pass{}
		})},
		Handler: func(x Exchange) error { return say(200, "query:q="+x.Query("q"))(x) },
	}}})
	for _, query := range []string{"q=1", "q=a+b%20c", "q=%23&r", "q=1#0", "q=1#1?q=2", "q=1#&r=3", "q=1%231"} {
		a := get(t, address, "/detail?"+query)
		if a.status == 400 {
			continue // by the server
		}
		if key := next(t, "the gate to report its key", keys); key != a.body {
			t.Errorf("%s: the gate keys by %q, and the handler reads %q, want the same", query, key, a.body)
		}
	}
}

func methodsAndPeer(t *testing.T, d Driver) {
	address := reporting(t, d, func(q gate.Request) string { return q.Method() + " " + q.RemoteAddr().String() })
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		c := dial(t, address)
		want := method + " " + c.conn.LocalAddr().String()
		if a := c.do(method, "/detail", "Content-Length: 0", "X-Forwarded-For: 1.2.3.4"); a.body != want {
			t.Errorf("got %q, want %q", a.body, want)
		}
	}
}

// peerReplaced: middleware outside the gate overwrites the peer's address, with or
// without a port.
func peerReplaced(t *testing.T, d Driver) {
	bits := &gate.IPOptions{IPv6Prefix: 128}
	address := d.Serve(t, App{
		Around: []Middleware{func(x Exchange, next func() error) error {
			x.SetPeer(x.Query("peer"))
			return next()
		}},
		Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			key, err := gate.ByIP(bits)(q)
			return gate.Pass{Reply: &gate.Reply{Body: fmt.Appendf(nil, "%s %s %t", q.RemoteAddr(), key, errors.Is(err, gate.ErrWiring))}}
		})},
		Routes: []Route{{Method: "GET", Pattern: "/detail", Handler: never(t)}},
	})
	for peer, want := range map[string]string{
		"203.0.113.9":          "203.0.113.9:0 ip=203.0.113.9 false",
		"203.0.113.9:443":      "203.0.113.9:443 ip=203.0.113.9 false",
		"2001:db8::1":          "[2001:db8::1]:0 ip=2001:db8::1 false",
		"[2001:db8::1]":        "[2001:db8::1]:0 ip=2001:db8::1 false",
		"[2001:db8::1]:443":    "[2001:db8::1]:443 ip=2001:db8::1 false",
		"fe80::1%eth0":         "[fe80::1%eth0]:0 ip=fe80::1 false",
		"[fe80::1%eth0]":       "[fe80::1%eth0]:0 ip=fe80::1 false",
		"::ffff:203.0.113.9":   "[::ffff:203.0.113.9]:0 ip=203.0.113.9 false",
		"":                     "invalid AddrPort  true",
		"@":                    "invalid AddrPort  true",
		"/run/app.sock":        "invalid AddrPort  true",
		"unknown":              "invalid AddrPort  true",
		"203.0.113.9, 1.2.3.4": "invalid AddrPort  true",
		"[203.0.113.9]":        "invalid AddrPort  true",
	} {
		if a := get(t, address, "/detail?peer="+url.QueryEscape(peer)); a.status != 200 || a.body != want {
			t.Errorf("a peer that is replaced with %q: got %d %q, want %q", peer, a.status, a.body, want)
		}
	}
}
