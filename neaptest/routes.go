package neaptest

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// RoutesOptions are the options of [Routes]. The zero value lists no route and changes no
// request; nil opts mean it.
type RoutesOptions struct {
	// Request, unless nil, changes each request before it is sent: it adds credentials, a body, a
	// signature. The request has an Idempotency-Key and, if it is a POST, PUT or PATCH, an empty JSON object.
	Request func(*http.Request)
	// Unguarded are routes of POST or PATCH that need no guard, each written as among the
	// routes. The zero value is none.
	Unguarded []string
	// Unlimited are routes that need no limit, written alike. The zero value is none.
	Unlimited []string
}

// Routes fails the test for each route that stands behind no limit, and for each route of POST or PATCH that stands
// behind no guard, unless the options list it. It also fails the test for a route that they list without need. A route
// is a method and a path, such as "POST /orders/{id}". Write parameters as in net/http, Gin, Echo or Fiber.
//
// Take the routes from the router, and the test knows those that you add later: from Routes of Gin's engine,
// of an Echo v4 or of an Echo v5's Router, without those whose Method is echo.RouteNotFound; from
// GetRoutes(true) of a Fiber app. An http.ServeMux does not tell its routes.
//
// Routes sends one request to each route, so the handlers run. It looks which of neap's scripts Redis is asked to run
// meanwhile: those of a limit on rates or on requests in flight, and those of gate.Idempotent or of an endpoint of
// core/callback. So it fails the test, though there is a gate, in two cases:
//
//   - A login or an outer limit refuses the request before the gate sees it. The failure tells the status; let
//     opts.Request add what is missing.
//   - A limit decides in this process: one of limit.NewLocal, or one by permits that were prepaid.
//
// That a script ran does not prove that its key or its numbers are right. send must serve an application on a client of
// this Redis, and nothing else may use this Redis meanwhile.
func Routes(tb testing.TB, r *Redis, send Send, opts *RoutesOptions, routes ...string) {
	tb.Helper()
	var own RoutesOptions
	if opts != nil {
		own = *opts
	}
	if len(routes) == 0 {
		tb.Errorf("Routes: got no route, want some, such as POST /orders/{id}")
	}
	for _, route := range routes {
		method, path, ok := strings.Cut(route, " ")
		host, path, absolute := strings.Cut(strings.TrimSpace(path), "/")
		request, err := requestTo(tb, method, host, path)
		if !ok || !absolute || err != nil {
			tb.Errorf("Routes: got the route %q, want a method and a path, such as POST /orders/{id}", route)
			continue
		}
		if own.Request != nil {
			own.Request(request)
		}
		r.serve().take()
		a := send.ask(request)
		asked := r.serve().take()
		if method == http.MethodPost || method == http.MethodPatch {
			check(tb, route, a, "guard", slices.ContainsFunc(asked, guards), "Unguarded", own.Unguarded)
		} else if slices.Contains(own.Unguarded, route) {
			tb.Errorf("Routes: %s: a %s needs no guard, want the route not to be in Unguarded", route, method)
		}
		check(tb, route, a, "limit", slices.ContainsFunc(asked, limits), "Unlimited", own.Unlimited)
	}
	for field, listed := range map[string][]string{"Unguarded": own.Unguarded, "Unlimited": own.Unlimited} {
		for _, route := range listed {
			if !slices.Contains(routes, route) {
				tb.Errorf("Routes: got %s in %s and not among the routes, want it there or in neither", route, field)
			}
		}
	}
}

// check fails the test unless either a gate of this kind was asked or the route is listed.
func check(tb testing.TB, route string, a answer, what string, asked bool, field string, listed []string) {
	tb.Helper()
	switch excepted := slices.Contains(listed, route); {
	case !asked && !excepted:
		tb.Errorf("Routes: %s: no %s was asked, and the answer was %v, want a %s, or the route in %s", route, what, a, what, field)
	case asked && excepted:
		tb.Errorf("Routes: %s: a %s was asked, want the route not to be in %s any more", route, what, field)
	}
}

// guards and limits report whether a script decides for a guard or a limit.
func guards(script string) bool { return script == "guard_begin.lua" }

func limits(script string) bool {
	return script == "inflight_acquire.lua" ||
		strings.HasPrefix(script, "limit_") && !strings.HasPrefix(script, "limit_settle(") &&
			!slices.Contains([]string{"limit_renew.lua", "limit_reset.lua", "limit_ban.lua", "limit_override.lua"}, script)
}

// requestTo makes a request to a route, under an Idempotency-Key of its own.
func requestTo(tb testing.TB, method, host, path string) (*http.Request, error) {
	tb.Helper()
	body := ""
	if slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, method) {
		body = "{}"
	}
	r, err := http.NewRequestWithContext(tb.Context(), method, "http://"+cmp.Or(host, "example.com")+"/"+filled(path), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", rand.Text())
	return r, nil
}

// parameter is one of net/http, Gin, Echo, Fiber and chi, such as {id}, {id:[0-9]{2}}, :id, :id<int>, :id? and *path, or what
// Echo and Fiber have behind a backslash.
var parameter = regexp.MustCompile(`\\.|\{([^{}]|\{[^{}]*\})*\}|[:*]\w*(<[^<>]*>)?\??`)

// filled puts 1 in the place of each parameter. A segment that begins with one may have more of them. In any other segment
// a colon stays: to net/http it is none, and what is there matches any parameter.
func filled(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		switch {
		case s == "{$}":
			segments[i] = ""
		case s == "+":
			segments[i] = "1"
		case strings.IndexAny(s, "{:*") == 0:
			segments[i] = parameter.ReplaceAllStringFunc(s, func(p string) string {
				if literal, is := strings.CutPrefix(p, `\`); is {
					return literal
				}
				return "1"
			})
		}
	}
	return strings.Join(segments, "/")
}
