package gatetest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/iptable"
)

// perHour is a limiter in process that cannot refill while a test runs.
func perHour(t testing.TB, name string, n int64) *limit.Limiter {
	t.Helper()
	l, err := limit.NewLocal(name, []limit.Policy{limit.FixedWindow{Name: name, Limit: n, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// withinTheHour matches the seconds that are left of an hour that began in this test.
var withinTheHour = regexp.MustCompile(`\b3[0-6]\d\d\b`)

// anHour replaces every such number of seconds with that of a whole hour.
func (a answer) anHour() answer {
	a.header = a.header.Clone()
	for _, values := range a.header {
		for i := range values {
			values[i] = withinTheHour.ReplaceAllString(values[i], "3600")
		}
	}
	a.body = withinTheHour.ReplaceAllString(a.body, "3600")
	return a
}

func rateLimit(t *testing.T, d Driver) {
	address := d.Serve(t, App{
		Gates: []gate.Gate{gate.RateLimit(perHour(t, "all", 100), gate.ByIP(nil), nil)},
		Routes: []Route{{
			Method: "GET", Pattern: "/users/{id}", Handler: say(200, "ok"),
			Gates: []gate.Gate{gate.RateLimit(perHour(t, "user", 2), gate.ByParam("id"), nil)},
		}},
	})
	fields := func(all, user int, more ...string) []string {
		return append(more,
			`Ratelimit-Policy: "all";q=100;w=3600`, `Ratelimit-Policy: "user";q=2;w=3600`,
			fmt.Sprintf(`Ratelimit: "all";r=%d;t=3600`, all), fmt.Sprintf(`Ratelimit: "user";r=%d;t=3600`, user))
	}
	const problem = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
		`"title":"Request cannot be satisfied as assigned quota has been exceeded",` +
		`"status":429,"detail":"Retry after 3600 s.","violated-policies":["user"]}` + "\n"
	denied := []string{"Cache-Control: no-store", "Content-Type: application/problem+json", "Retry-After: 3600"}
	c := dial(t, address)
	ask := func(method, target string) answer { return c.do(method, target).anHour() }
	ask("GET", "/users/alice%2Fbob").is(t, 200, "ok", fields(99, 1, "Content-Type: "+plain)...)
	ask("HEAD", "/users/alice%2fbob").is(t, 200, "", fields(98, 0, "Content-Type: "+plain)...)
	ask("GET", "/users/alice%2Fbob").is(t, 429, problem, fields(97, 0, denied...)...)
	ask("HEAD", "/users/alice%2Fbob").is(t, 429, "", fields(96, 0, denied...)...)
	ask("GET", "/users/alice").is(t, 200, "ok", fields(95, 1, "Content-Type: "+plain)...)
}

// rateLimitExact: of many concurrent requests, exactly as many are admitted as the limit
// allows.
func rateLimitExact(t *testing.T, d Driver) {
	const clients, admitted = 40, 13
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail", Handler: say(200, "ok"),
		Gates: []gate.Gate{gate.RateLimit(perHour(t, "detail", admitted), gate.ByIP(nil), nil)},
	}}})
	statuses := make([]int, clients)
	var wg sync.WaitGroup
	for i := range clients {
		c := dial(t, address)
		wg.Go(func() {
			a, err := c.try("GET", "/detail", "")
			if err != nil {
				t.Error(err)
			}
			statuses[i] = a.status
		})
	}
	wg.Wait()
	slices.Sort(statuses)
	want := append(slices.Repeat([]int{200}, admitted), slices.Repeat([]int{429}, clients-admitted)...)
	if !slices.Equal(statuses, want) {
		t.Errorf("got the statuses %v, want %d admitted", statuses, admitted)
	}
}

// decisionInContext: the handler finds the decision of the innermost gate that puts it
// into the context. Middleware outside that gate does not find it.
func decisionInContext(t *testing.T, d Driver) {
	policy := func(x Exchange) string {
		found, _ := limit.FromContext(x.Context())
		return found.Policy
	}
	outside := func(want string) Middleware {
		return func(x Exchange, next func() error) error {
			before := x.Context()
			err := next()
			if got := policy(x); got != want || x.Context() != before {
				t.Errorf("middleware found the decision of %q, want that of %q", got, want)
			}
			return err
		}
	}
	by := func(name string, in bool) gate.Gate {
		return gate.RateLimit(perHour(t, name, 7), gate.ByIP(nil), &gate.RateLimitOptions{InContext: in})
	}
	address := d.Serve(t, App{
		Around: []Middleware{outside("")},
		Gates:  []gate.Gate{by("outer", true)},
		Routes: []Route{
			{
				Method: "GET", Pattern: "/inner", Gates: []gate.Gate{by("inner", true), by("silent", false)},
				Around: []Middleware{outside("outer")},
				Handler: func(x Exchange) error {
					found, ok := limit.FromContext(x.Context())
					return say(200, fmt.Sprintf("%s %d %t", found.Policy, found.Remaining, ok && found.Allowed))(x)
				},
			},
			{Method: "GET", Pattern: "/outer", Gates: []gate.Gate{by("none", false)}, Handler: func(x Exchange) error {
				return say(200, policy(x))(x)
			}},
		},
	})
	for path, want := range map[string]string{"/inner": "inner 6 true", "/outer": "outer"} {
		if a := get(t, address, path); a.status != 200 || a.body != want {
			t.Errorf("%s: got %d %q, want %q", path, a.status, a.body, want)
		}
	}
}

// legacyFields of an inner gate replace those of an outer one.
func legacyFields(t *testing.T, d Driver) {
	options := &gate.RateLimitOptions{Headers: gate.HeadersX}
	address := d.Serve(t, App{
		Gates: []gate.Gate{gate.RateLimit(perHour(t, "all", 100), gate.ByIP(nil), options)},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Handler: say(200, "ok"),
			Gates: []gate.Gate{gate.RateLimit(perHour(t, "detail", 7), gate.ByRoute(), options)},
		}},
	})
	get(t, address, "/detail").anHour().is(t, 200, "ok", "Content-Type: "+plain,
		"X-Ratelimit-Limit: 7", "X-Ratelimit-Remaining: 6", "X-Ratelimit-Reset: 3600")
}

// refusals: a request without a usable key gets a 4xx that says why, and takes no
// permits.
func refusals(t *testing.T, d Driver) {
	guarded := func(pattern string, key gate.Key) Route {
		g := gate.RateLimit(perHour(t, "refusals", 1), key, &gate.RateLimitOptions{
			OnError: func(_ gate.Request, err error) {
				t.Errorf("%s: the hook was told %v, want nothing", pattern, err)
			},
			Cost: func(q gate.Request) (int64, error) {
				if q.RawQuery() == "" {
					return 1, nil
				}
				return strconv.ParseInt(strings.TrimPrefix(q.RawQuery(), "n="), 10, 64)
			},
		})
		return Route{Method: "POST", Pattern: pattern, Gates: []gate.Gate{g}, Handler: never(t)}
	}
	address := d.Serve(t, App{Routes: []Route{
		guarded("/key", gate.ByHeader("X-Api-Key")),
		guarded("/form", gate.ByForm("tenant", nil)),
		guarded("/json", gate.ByJSON("/tenant", nil)),
		guarded("/query", gate.ByQuery("tenant")),
		guarded("/value", gate.ByValue("user", "user")),
		guarded("/cost", gate.ByIP(nil)),
		guarded("/native", d.Key("X-Api-Key")),
	}})
	for name, c := range map[string]struct {
		status       int
		target, body string
		lines        []string
	}{
		"missing":       {400, "/key", "", nil},
		"empty":         {400, "/key", "", []string{"X-Api-Key:"}},
		"doubled":       {400, "/key", "", []string{"X-Api-Key: a", "X-Api-Key: a"}},
		"too long":      {400, "/key", "", []string{"X-Api-Key: " + strings.Repeat("a", 2000)}},
		"no form":       {415, "/form", "tenant=a", nil},
		"doubled field": {400, "/form", "tenant=a&tenant=b", []string{"Content-Type: application/x-www-form-urlencoded"}},
		"no JSON":       {400, "/json", "tenant", []string{"Content-Type: application/json"}},
		"no query":      {400, "/query", "", nil},
		"no user":       {401, "/value", "", nil},
		"too expensive": {400, "/cost?n=2", "", nil},
		"negative":      {400, "/cost?n=-1", "", nil},
		"by the driver": {400, "/native", "", nil},
	} {
		for range 2 {
			a := dial(t, address).post(c.target, c.body, c.lines...)
			kind := a.header.Get("Content-Type")
			if a.status != c.status || kind != "application/problem+json" || !strings.Contains(a.body, fmt.Sprintf(`"status":%d`, c.status)) {
				t.Errorf("%s: got %d %s %q, want a problem with %d", name, a.status, kind, a.body, c.status)
			}
			if strings.Contains(a.body, "aaaa") {
				t.Errorf("%s: the client reads %s, want nothing of the key", name, a.body)
			}
		}
	}
}

// unknownRoute: if no route is known, a route key is answered with an error that says so,
// and never with one key for all requests.
func unknownRoute(t *testing.T, d Driver) {
	hooked := make(chan error, 16)
	address := d.Serve(t, App{
		Gates: []gate.Gate{gate.RateLimit(perHour(t, "unknown", 1), gate.ByRoute(), &gate.RateLimitOptions{
			OnError: func(_ gate.Request, err error) { hooked <- err },
		})},
		Routes: []Route{{Method: "GET", Pattern: "/detail", Handler: say(200, "ok")}},
	})
	a := get(t, address, "/nowhere")
	if err := next(t, "OnError to be told", hooked); a.status != 500 || !strings.Contains(err.Error(), "route") {
		t.Errorf("got %d, and the hook told %v, want 500 and an error that names the route", a.status, err)
	}
	if strings.Contains(a.body, "route") {
		t.Errorf("the client reads %s, want nothing of the error", a.body)
	}
}

// clientIPs checks who each adapter takes for the client, by the table of core/gate.
func clientIPs(t *testing.T, d Driver) {
	cases := iptable.Cases()
	address := reporting(t, d, func(q gate.Request) string {
		i, err := strconv.Atoi(q.Header("X-Case")[0])
		if err != nil {
			return err.Error()
		}
		subject, err := gate.ByIP(cases[i].Options)(q)
		switch {
		case errors.Is(err, gate.ErrWiring):
			return "500"
		case err != nil:
			return "400"
		}
		return subject
	})
	c, sent := dial(t, address), 0
	for i, one := range cases {
		if !one.Loopback() {
			continue
		}
		sent++
		lines := []string{"X-Case: " + strconv.Itoa(i), "X-Real-Ip: 9.9.9.9", "Forwarded: for=9.9.9.9", "True-Client-Ip: 9.9.9.9"}
		for _, line := range one.Lines {
			lines = append(lines, "X-Forwarded-For: "+line)
		}
		want := one.Want
		if one.Status != 0 {
			want = strconv.Itoa(one.Status)
		}
		if a := c.do("GET", "/detail", lines...); a.status != 200 || a.body != want {
			t.Errorf("%s: got %d %q, want %q", one.Name, a.status, a.body, want)
		}
	}
	if sent < 30 {
		t.Errorf("%d topologies were sent, want at least 30", sent)
	}
}
