package gatetest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
)

// located is what a gate is told about the route of a request.
type located struct{ route, id, post, rest, none string }

func locate(q gate.Request) located {
	return located{q.Route(), param(q, "id"), param(q, "post"), param(q, "..."), param(q, "none")}
}

// param is what a gate keys by. It is the same for all spellings.
func param(q gate.Request, name string) string {
	key, _ := gate.ByParam(name)(q)
	return strings.TrimPrefix(key, "param:"+name+"=")
}

// locating serves routes with a gate around each and one around all of them, and reports
// what the two are told.
func locating(t testing.TB, d Driver) (address string, global, own chan located) {
	global, own = make(chan located, 16), make(chan located, 16)
	noting := func(seen chan located) gate.Gate {
		return enter(func(q gate.Request) gate.Pass {
			seen <- locate(q)
			return gate.Pass{}
		})
	}
	app := App{Gates: []gate.Gate{noting(global)}}
	for _, pattern := range []string{"/detail", "/users/{id}", "/users/{id}/posts/{post}", "/files/{...}", "/by/{id}/raw"} {
		app.Routes = append(app.Routes, Route{
			Method: "GET", Pattern: pattern, Gates: []gate.Gate{noting(own)}, Handler: say(200, pattern),
		})
	}
	return d.Serve(t, app), global, own
}

func routes(t *testing.T, d Driver) {
	address, global, own := locating(t, d)
	c := dial(t, address)
	for target, want := range map[string]located{
		"/detail":              {route: "/detail"},
		"/detail?id=9":         {route: "/detail"},
		"/users/7":             {route: "/users/{id}", id: "7"},
		"/users/7/posts/8":     {route: "/users/{id}/posts/{post}", id: "7", post: "8"},
		"/by/u/raw":            {route: "/by/{id}/raw", id: "u"},
		"/files/a":             {route: "/files/{...}", rest: "a"},
		"/files/a/b%20c/d.txt": {route: "/files/{...}", rest: "a/b c/d.txt"},
		"/files/":              {route: "/files/{...}"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			if a := c.do(method, target); a.status != 200 {
				t.Errorf("%s %s: got %d, want 200", method, target, a.status)
			} else if got := next(t, "the route's gate to report the route", own); got != want {
				t.Errorf("%s %s: the route's gate was told %+v, want %+v", method, target, got, want)
			}
			// Outside the router, a gate is told the right route or none.
			if got := next(t, "the outer gate to report the route", global); got != want && got != (located{}) {
				t.Errorf("%s %s: the outer gate was told %+v, want %+v or nothing", method, target, got, want)
			}
		}
	}
	for _, target := range []string{"/nowhere", "/users", "/users/7/posts"} {
		if a := c.do("GET", target); a.status != 404 {
			t.Errorf("%s: got %d, want 404", target, a.status)
		}
		if got := next(t, "the outer gate to report the route", global); got != (located{}) {
			t.Errorf("%s: the outer gate was told %+v of a path without a route, want nothing", target, got)
		}
	}
}

// spellings are spellings of parameters, each with what a gate keys by. A plus sign stays
// one, or becomes a space if the handler gets a space.
var spellings = map[string]string{
	"plain":            "plain",
	"a%2Fb%20c":        "a/b c",
	"a%2fb":            "a/b",
	"a%252fb":          "a/b",
	"%2Fa%2F":          "/a/",
	"100%25":           "100%",
	"%2525":            "%",
	"%252F":            "/",
	"%25%32%46":        "/",
	"%25%252546":       "%F",
	"%C3%A9t%c3%a9":    "été",
	"\u00e9":           "é",
	"%FF":              "\xff",
	"a+b":              "a+b",
	"a%2Bb":            "a+b",
	"a%20b":            "a b",
	"a%3Fb%23c":        "a?b#c",
	"a;b=c,d:e@f&g":    "a;b=c,d:e@f&g",
	"%7Bid%7D":         "{id}",
	"%3Aid":            ":id",
	"*":                "*",
	"...":              "...",
	"%00":              "\x00",
	"A":                "A",
	"%41":              "A",
	"%2541":            "A",
	"%61%6C%69%63%65":  "alice",
	"with%20%2520both": "with  both",
}

// escapes: all spellings of a parameter are one key.
func escapes(t *testing.T, d Driver) {
	address, global, own := locating(t, d)
	c := dial(t, address)
	spaced := func(l located) located {
		l.id, l.rest = strings.ReplaceAll(l.id, "+", " "), strings.ReplaceAll(l.rest, "+", " ")
		return l
	}
	for escaped, want := range spellings {
		for pattern, told := range map[string]located{
			"/users/%s":             {route: "/users/{id}", id: want},
			"/users/%s/posts/p%%20": {route: "/users/{id}/posts/{post}", id: want, post: "p "},
			"/files/x/%s":           {route: "/files/{...}", rest: "x/" + want},
		} {
			target := fmt.Sprintf(pattern, escaped)
			if a := c.do("GET", target); a.status != 200 {
				t.Errorf("%s: got %d, want 200", target, a.status)
			} else if got := next(t, "the route's gate to report the route", own); got != told && got != spaced(told) {
				t.Errorf("%s: the route's gate keys by %+v, want %+v", target, got, told)
			}
			if got := next(t, "the outer gate to report the route", global); got != told && got != spaced(told) && got != (located{}) {
				t.Errorf("%s: the outer gate keys by %+v, want %+v or nothing", target, got, told)
			}
		}
	}
}

// params: a gate finds the parameter that the handler gets. All spellings that the
// handler can take for one value, whether or not it decodes, are one key.
func params(t *testing.T, d Driver) {
	type told struct{ keyed, found string }
	gates, handlers := make(chan told, 16), make(chan string, 16)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/orders/{id}",
		Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			gates <- told{param(q, "id"), q.Param("id")}
			return gate.Pass{}
		})},
		Handler: func(x Exchange) error {
			handlers <- strings.Clone(x.Param("id"))
			return say(200, "ok")(x)
		},
	}}})
	c, keys := dial(t, address), map[string]string{}
	for escaped := range spellings {
		if a := c.do("GET", "/orders/"+escaped); a.status != 200 {
			t.Fatalf("%s: got %d, want 200", escaped, a.status)
		}
		asked, got := next(t, "the gate to report the parameter", gates), next(t, "the handler to report the parameter", handlers)
		keyed, found := asked.keyed, asked.found
		if found != got {
			t.Errorf("%s: the gate finds %q, and the handler %q, want the same", escaped, found, got)
		}
		taken := []string{got}
		if decoded, err := url.PathUnescape(got); err == nil {
			taken = append(taken, decoded)
		}
		for _, order := range taken {
			if other, known := keys[order]; known && other != keyed {
				t.Errorf("%s: the handler takes it for the order %q, which has the keys %q and %q, want one key",
					escaped, order, keyed, other)
			}
			keys[order] = keyed
		}
	}
}

// paramsExclude: if the handler takes two requests for one order, only one of them runs
// at a time, however they are spelled.
func paramsExclude(t *testing.T, d Driver) {
	locker := newLocker(t, d)
	entered, leave := make(chan string), make(chan bool)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/orders/{id}",
		Gates: []gate.Gate{gate.Exclusive(locker, gate.ByParam("id"), nil)},
		Handler: func(x Exchange) error {
			entered <- strings.Clone(x.Param("id"))
			<-leave
			return say(200, "ok")(x)
		},
	}}})
	// order is what a handler gets, decoded.
	order := func(got string) string {
		if decoded, err := url.PathUnescape(got); err == nil {
			return decoded
		}
		return got
	}
	for _, pair := range [][2]string{
		{"a+b", "a%20b"}, {"a+b", "a%2Bb"}, {"x%2Fy", "x%2fy"}, {"x%2Fy+", "x%2Fy%20"}, {"%41", "A"}, {"%2541", "%41"}, {"7", "%37"},
	} {
		held, other := dial(t, address), dial(t, address)
		if err := held.write("GET", "/orders/"+pair[0], ""); err != nil {
			t.Fatal(err)
		}
		first := order(next(t, "a handler to run", entered))
		if err := other.write("GET", "/orders/"+pair[1], ""); err != nil {
			t.Fatal(err)
		}
		refused := make(chan answer, 1)
		go func() {
			a, err := other.read("GET")
			if err != nil {
				t.Error(err)
			}
			refused <- a
		}()
		waiting := 1
		select {
		case a := <-refused:
			if a.status != 409 {
				t.Errorf("%s while %s runs: got %d, want 409", pair[1], pair[0], a.status)
			}
		case second := <-entered:
			waiting++
			if order(second) == first {
				t.Errorf("%s ran at the same time as %s, and both are the order %q, want one at a time", pair[1], pair[0], first)
			}
		case <-time.After(patience()):
			t.Fatalf("%s while %s runs: no handler ran and no answer came for %v, want one of the two",
				pair[1], pair[0], patience())
		}
		for range waiting {
			leave <- true
		}
		if _, err := held.read("GET"); err != nil {
			t.Fatal(err)
		}
		if waiting == 2 {
			next(t, "the answer to the second request", refused)
		}
	}
}

// invalidEscapes: the server refuses them, or the gate keys by them as they are.
func invalidEscapes(t *testing.T, d Driver) {
	address, global, own := locating(t, d)
	for _, escaped := range []string{"%", "%zz", "a%2", "b%zz"} {
		a := get(t, address, "/users/"+escaped)
		if a.status == 400 {
			continue
		}
		if got, want := next(t, "the route's gate to report the route", own), (located{route: "/users/{id}", id: escaped}); a.status != 200 || got != want {
			t.Errorf("%s: got %d, and the gate was told %+v, want %+v", escaped, a.status, got, want)
		}
		next(t, "the outer gate to report the route", global)
	}
}
