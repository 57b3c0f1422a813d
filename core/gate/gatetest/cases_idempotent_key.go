package gatetest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// idempotentKeys: one key of one principal, method and path is one request. If any of
// these differs, it is another request.
func idempotentKeys(t *testing.T, d Driver) {
	g := newGuard(t, d, idempotency.Options{})
	var runs atomic.Int64
	var routes []Route
	for _, at := range []string{"POST /orders", "PATCH /orders", "GET /orders", "POST /payments", "POST /items/{id}"} {
		route := guarded(g, nil, numbered(&runs))
		route.Method, route.Pattern, _ = strings.Cut(at, " ")
		routes = append(routes, route)
	}
	address := d.Serve(t, App{Routes: routes})
	const json, form = "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"
	ran := 0
	for _, ask := range []struct {
		what, account, key, at, body, kind string
		run                                int // the next one, or a replay of that; 0: the status follows
		status                             int
	}{
		{"new", "alice", "k", "POST /orders", "tea", json, 1, 0},
		{"repeated", "alice", "k", "POST /orders", "tea", json, 1, 0},
		{"quoted", "alice", `"k"`, "POST /orders", "tea", json, 1, 0},
		{"with a parameter", "alice", "k", "POST /orders", "tea", json + "; charset=utf-8", 1, 0},
		{"another case", "alice", "K", "POST /orders", "tea", json, 2, 0},
		{"another principal", "bob", "k", "POST /orders", "tea", json, 3, 0},
		{"another method", "alice", "k", "PATCH /orders", "tea", json, 4, 0},
		{"another path", "alice", "k", "POST /payments", "tea", json, 5, 0},
		{"another value in the path", "alice", "k", "POST /items/1", "tea", json, 6, 0},
		{"and another", "alice", "k", "POST /items/2", "tea", json, 7, 0},
		{"another query", "alice", "k", "POST /orders?to=bob", "tea", json, 0, 422},
		{"another body", "alice", "k", "POST /orders", "two", json, 0, 422},
		{"a longer body", "alice", "k", "POST /orders", "tea ", json, 0, 422},
		{"no body", "alice", "k", "POST /orders", "", json, 0, 422},
		{"another media type", "alice", "k", "POST /orders", "tea", form, 0, 422},
		{"unguarded", "alice", "k", "GET /orders", "", json, 8, 0},
		{"unguarded", "alice", "k", "GET /orders", "", json, 9, 0},
		{"repeated after all that", "alice", "k", "POST /orders", "tea", json, 1, 0},
		{"the other's", "bob", "k", "POST /orders", "tea", json, 3, 0},
	} {
		method, target, _ := strings.Cut(ask.at, " ")
		a, err := dial(t, address).try(method, target, ask.body, account+": "+ask.account,
			"Idempotency-Key: "+ask.key, ask.kind, fmt.Sprintf("Content-Length: %d", len(ask.body)))
		if err != nil {
			t.Fatalf("%s: got the error %v, want an answer", ask.what, err)
		}
		t.Run(strings.ReplaceAll(ask.what, " ", "-"), func(t *testing.T) {
			if ask.status == 422 {
				a.isProblem(t, 422, "key-reused", "The key was used for another request")
				return
			}
			a.isRun(t, ask.run, ask.run <= ran)
		})
		ran = max(ran, ask.run)
	}
	if n := runs.Load(); n != 9 {
		t.Errorf("got %d runs, want 9", n)
	}
}

// idempotentRefusals: a request without a usable key claims nothing, and is told why.
func idempotentRefusals(t *testing.T, d Driver) {
	g := newGuard(t, d, idempotency.Options{})
	var runs atomic.Int64
	optional := guarded(g, &gate.IdempotentOptions{Optional: true}, numbered(&runs))
	optional.Pattern = "/optional"
	address := d.Serve(t, App{Routes: []Route{guarded(g, nil, never(t)), optional}})
	const alice, who = account + ": alice", "Idempotency-Key: 17"
	for name, c := range map[string]struct {
		status int
		kind   string
		lines  []string
	}{
		"no key":             {400, "key-missing", []string{alice}},
		"an empty key":       {400, "key-invalid", []string{alice, `Idempotency-Key: ""`}},
		"a doubled key":      {400, "key-invalid", []string{alice, who, who}},
		"a list":             {400, "key-invalid", []string{alice, "Idempotency-Key: a, b"}},
		"a broken key":       {400, "key-invalid", []string{alice, `Idempotency-Key: "17`}},
		"a long key":         {400, "key-invalid", []string{alice, "Idempotency-Key: " + strings.Repeat("1", 256)}},
		"no principal":       {401, "", []string{who}},
		"an empty one":       {401, "", []string{who, account + ":"}},
		"a doubled one":      {400, "", []string{who, alice, alice}},
		"neither of the two": {400, "key-missing", nil},
	} {
		a := dial(t, address).post("/orders", "", c.lines...)
		kind := `"type":"` + gate.TypeIdempotency + c.kind + `"`
		if a.status != c.status || strings.Contains(a.body, kind) != (c.kind != "") || strings.Contains(a.body, "alice") ||
			a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("Retry-After") != "" {
			t.Errorf("%s: got %d %s with %q, want %d %s", name, a.status, a.body, visible(a.header), c.status, c.kind)
		}
	}
	for i := range 2 {
		dial(t, address).post("/optional", "", alice).isRun(t, i+1, false)
	}
	if s := g.Stats(); s.Begun != 0 {
		t.Errorf("after requests that were refused or not guarded: got stats %+v, want none begun", s)
	}
	if a := dial(t, address).post("/optional", "", alice, who, who); a.status != 400 {
		t.Errorf("a broken key where it is optional: got %d, want 400", a.status)
	}
	for i := range 2 {
		dial(t, address).post("/optional", "", alice, who).isRun(t, 3, i > 0)
	}
}

// idempotentReused: another request under the same key is refused with a 422, even while
// the first runs.
func idempotentReused(t *testing.T, d Driver) {
	g := newGuard(t, d, idempotency.Options{})
	var runs atomic.Int64
	running, finish := make(chan struct{}, 16), make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	defer end() // or a server with a bug would wait for ever
	address := d.Serve(t, App{Routes: []Route{guarded(g, nil, func(x Exchange) error {
		running <- struct{}{}
		<-finish
		return numbered(&runs)(x)
	})}})
	c := dial(t, address)
	if err := c.write("POST", "/orders", "tea", keyed("17", "Content-Length: 3")...); err != nil {
		t.Fatal(err)
	}
	next(t, "the handler to run", running)
	for range 2 {
		dial(t, address).post("/orders", "two", keyed("17")...).isProblem(t, 422, "key-reused", "The key was used for another request")
		buy(t, address).isInFlight(t)
	}
	end()
	a, err := c.read("POST")
	if err != nil {
		t.Fatal(err)
	}
	a.isRun(t, 1, false)
	dial(t, address).post("/orders", "two", keyed("17")...).isProblem(t, 422, "key-reused", "The key was used for another request")
	buy(t, address).isRun(t, 1, true)
}

// idempotentOwnKeys: keys and fields of your own replace the header and the body.
func idempotentOwnKeys(t *testing.T, d Driver) {
	g := newGuard(t, d, idempotency.Options{})
	var runs atomic.Int64
	json := func(name string) gate.Key { return gate.ByJSON("/"+name, nil) }
	route := func(at string, opts *gate.IdempotentOptions) Route {
		method, pattern, _ := strings.Cut(at, " ")
		return Route{
			Method: method, Pattern: pattern, Handler: numbered(&runs),
			Gates: []gate.Gate{gate.Idempotent(g, gate.Everyone, opts)},
		}
	}
	address := d.Serve(t, App{Routes: []Route{
		route("PUT /orders/{id}", &gate.IdempotentOptions{Key: gate.ByParam("id")}),
		route("POST /hooks", &gate.IdempotentOptions{Key: json("id")}),
		route("POST /fields", &gate.IdempotentOptions{Key: json("id"), Fields: []gate.Key{json("amount"), json("to")}}),
		route("POST /canonical", &gate.IdempotentOptions{Key: gate.ByQuery("id"), Fingerprint: gate.CanonicalJSON}),
		route("POST /skipped", &gate.IdempotentOptions{Key: json("id"), Skip: func(r gate.Request) bool { return r.RawQuery() != "" }}),
	}})
	ran := 0
	for i, ask := range []struct {
		at, body    string
		run, status int
	}{
		{"PUT /orders/a%2Fb", "tea", 1, 201}, {"PUT /orders/a%2Fb", "tea", 1, 201}, {"PUT /orders/c", "tea", 2, 201},
		{"PUT /orders/a%2Fb", "two", 0, 422},
		{"POST /hooks", `{"id":"e1","at":1}`, 3, 201}, {"POST /hooks", `{"id":"e1","at":1}`, 3, 201},
		{"POST /hooks", `{"id":"e1","at":2}`, 0, 422}, {"POST /hooks", `{"id":"e2","at":2}`, 4, 201},
		{"POST /hooks", `{"at":2}`, 0, 400}, {"POST /hooks", `{"id":`, 0, 400},
		{"POST /fields", `{"id":"e1","amount":"5","to":"bob","at":1}`, 5, 201},
		{"POST /fields?try=2", `{"at":2,"id":"e1","to":"bob","amount":"5"}`, 5, 201},
		{"POST /fields", `{"id":"e1","amount":"6","to":"bob","at":1}`, 0, 422},
		{"POST /fields", `{"id":"e1","amount":"5","at":1}`, 0, 422},
		{"POST /skipped?now", `{}`, 6, 201}, {"POST /skipped?now", `{}`, 7, 201},
		{"POST /canonical?id=e1", `{"to":"bob","amount":5}`, 8, 201}, {"POST /canonical?id=e1", ` {"amount":5.0, "to":"\u0062ob"}`, 8, 201},
		{"POST /canonical?id=e1", `{"amount":6,"to":"bob"}`, 0, 422}, {"POST /canonical?id=e1", `{"amount":5,"to":"bob","to":"eve"}`, 0, 400},
		{"POST /canonical?id=e2", `{"amount":9007199254740993}`, 0, 400}, {"POST /canonical?id=e2", `{"amount":`, 0, 400},
		{"POST /canonical?id=e2", `{"amount":"9007199254740993"}`, 9, 201},
	} {
		method, target, _ := strings.Cut(ask.at, " ")
		a, err := dial(t, address).try(method, target, ask.body, "Content-Type: application/json",
			"Idempotency-Key: ignored", fmt.Sprintf("Content-Length: %d", len(ask.body)))
		if err != nil || a.status != ask.status {
			t.Errorf("request %d: got %d %s, %v, want %d", i, a.status, a.body, err, ask.status)
		} else if ask.run > 0 {
			a.isRun(t, ask.run, ask.run <= ran)
		}
		ran = max(ran, ask.run)
	}
}
