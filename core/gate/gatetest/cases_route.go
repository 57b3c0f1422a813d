package gatetest

import (
	"fmt"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// located is what a gate is told about where a request goes.
type located struct{ route, id, post, rest, none string }

func locate(q gate.Request) located {
	return located{q.Route(), q.Param("id"), q.Param("post"), q.Param("..."), q.Param("none")}
}

// locating serves routes with a gate around each and one around all of them,
// and reports what the two are told.
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
				t.Errorf("%s %s: got %d", method, target, a.status)
			} else if got := next(t, own); got != want {
				t.Errorf("%s %s: the route's gate was told %+v, want %+v", method, target, got, want)
			}
			// Outside the routing, a gate is told the truth or nothing.
			if got := next(t, global); got != want && got != (located{}) {
				t.Errorf("%s %s: the outer gate was told %+v, want %+v or nothing", method, target, got, want)
			}
		}
	}
	for _, target := range []string{"/nowhere", "/users", "/users/7/posts"} {
		if a := c.do("GET", target); a.status != 404 {
			t.Errorf("%s: got %d", target, a.status)
		}
		if got := next(t, global); got != (located{}) {
			t.Errorf("%s: the outer gate was told %+v of a path without a route", target, got)
		}
	}
}

// escapes: a parameter is percent-decoded exactly once.
func escapes(t *testing.T, d Driver) {
	address, global, own := locating(t, d)
	c := dial(t, address)
	for escaped, want := range map[string]string{
		"plain":            "plain",
		"a%2Fb%20c":        "a/b c",
		"a%2fb":            "a/b",
		"%2Fa%2F":          "/a/",
		"100%25":           "100%",
		"%2525":            "%25",
		"%252F":            "%2F",
		"%25%32%46":        "%2F",
		"%C3%A9t%c3%a9":    "été",
		"\u00e9":           "é",
		"%FF":              "\xff",
		"a+b":              "a+b",
		"a%2Bb":            "a+b",
		"a%3Fb%23c":        "a?b#c",
		"a;b=c,d:e@f&g":    "a;b=c,d:e@f&g",
		"%7Bid%7D":         "{id}",
		"%3Aid":            ":id",
		"*":                "*",
		"...":              "...",
		"%00":              "\x00",
		"%61%6C%69%63%65":  "alice",
		"with%20%2520both": "with %20both",
	} {
		for pattern, told := range map[string]located{
			"/users/%s":             {route: "/users/{id}", id: want},
			"/users/%s/posts/p%%20": {route: "/users/{id}/posts/{post}", id: want, post: "p "},
			"/files/x/%s":           {route: "/files/{...}", rest: "x/" + want},
		} {
			target := fmt.Sprintf(pattern, escaped)
			if a := c.do("GET", target); a.status != 200 {
				t.Errorf("%s: got %d", target, a.status)
			} else if got := next(t, own); got != told {
				t.Errorf("%s: the route's gate was told %+v, want %+v", target, got, told)
			}
			if got := next(t, global); got != told && got != (located{}) {
				t.Errorf("%s: the outer gate was told %+v, want %+v or nothing", target, got, told)
			}
		}
	}
}

// invalidEscapes: the server refuses them, or the gate sees them as they are.
func invalidEscapes(t *testing.T, d Driver) {
	address, global, own := locating(t, d)
	for _, escaped := range []string{"%", "%zz", "a%2", "%2Fb%zz"} {
		a := get(t, address, "/users/"+escaped)
		if a.status == 400 {
			continue
		}
		if got, want := next(t, own), (located{route: "/users/{id}", id: escaped}); a.status != 200 || got != want {
			t.Errorf("%s: got %d, and the gate was told %+v, want %+v", escaped, a.status, got, want)
		}
		next(t, global)
	}
}
