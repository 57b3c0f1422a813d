package neaptest

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// RoutesOptions are the options of [Routes].
type RoutesOptions struct {
	// Request changes each request before it is sent: it adds credentials, a body, a
	// signature. The request has an Idempotency-Key and, if its method has a body, an empty JSON object.
	Request func(*http.Request)
	// Unguarded are routes of POST or PATCH that may be without a guard, each as it
	// stands among the routes.
	Unguarded []string
	// Unlimited are routes that may be without a limit, as above.
	Unlimited []string
}

// Routes fails the test for each route that stands behind no limit, and for each of POST and PATCH that stands
// behind no guard, unless the options list it. It fails too for what they list without need. A route is a method and a
// path, such as "POST /orders/{id}"; parameters may be written as those of net/http, Gin, Echo or Fiber.
//
// It sends one request to each route and looks which of neap's scripts Redis is asked to run
// meanwhile, for a limit on rates or on requests in flight, and for gate.Idempotent or an endpoint of
// core/callback. So the handlers run, and what it does not see fails:
//
//   - a route whose request is refused before it comes to the gate, by a login or an outer limit: the
//     failure tells the status, and Request helps;
//   - a limit that decides in this process, of limit.NewLocal or by permits that were prepaid.
//
// It believes what it sees: that a script ran does not prove that its key or its numbers are
// right. Send must serve an application on a client of this Redis, and nothing else may use that meanwhile.
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

// check compares what was asked for with what is listed.
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
		strings.HasPrefix(script, "limit_") && !slices.Contains([]string{"limit_refund.lua", "limit_reset.lua", "limit_ban.lua"}, script)
}

// requestTo makes a request to a route, as no other that was made.
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

// filled has 1 in the place of each parameter: {id}, {path...}, :id, *path and +.
func filled(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		switch {
		case s == "{$}":
			segments[i] = ""
		case strings.HasPrefix(s, "{"), strings.HasPrefix(s, ":"), strings.HasPrefix(s, "*"), s == "+":
			segments[i] = "1"
		}
	}
	return strings.Join(segments, "/")
}
