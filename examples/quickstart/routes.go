package main

import (
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
)

// The policies of the routes, which the demo counts by.
var (
	detail     = limit.SlidingLog{Limit: 5, Window: 10 * time.Second}
	window     = limit.FixedWindow{Limit: 5, Window: 10 * time.Second}
	sliding    = limit.SlidingWindow{Limit: 5, Window: 10 * time.Second}
	bucket     = limit.TokenBucket{Rate: 2, Per: time.Second, Burst: 5}
	bothBucket = limit.TokenBucket{Rate: 5, Per: time.Second, Burst: 5}
	bothWindow = limit.FixedWindow{Limit: 8, Window: 30 * time.Second}
	users      = limit.FixedWindow{Limit: 3, Window: 10 * time.Second}
	apiKeys    = limit.FixedWindow{Limit: 3, Window: 10 * time.Second}
	cost       = limit.TokenBucket{Rate: 1, Per: time.Second, Burst: 10}
	shadow     = limit.FixedWindow{Limit: 2, Window: 10 * time.Second}
	logins     = limit.FixedWindow{Limit: 3, Window: 30 * time.Second}
)

// inflight is how many requests may be in flight at once.
const inflight = 2

const (
	apiKeyHeader = "X-Api-Key"
	orderHeader  = "X-Order"
	keyHeader    = "Idempotency-Key"
)

// route is a path, written as net/http and the gates do, and what limits it.
// Without any limit it lets everything pass.
type route struct {
	method    string // "" is GET and HEAD
	path      string
	query     string // for people: what a request may ask for
	policies  []limit.Policy
	shadow    []limit.Policy // reported, never enforced
	inflight  int64
	exclusive bool                   // one request at a time
	once      bool                   // one run a key, of the client that key names
	preset    func() callback.Preset // of the provider whose callbacks it receives
	handle    callback.Handler       // what one of them does
	sells     bool                   // a unit to each client that key names
	key       gate.Key
	cost      func(gate.Request) (int64, error) // nil: each request costs 1
	count     func(status int) bool             // nil: each admitted request counts
	work      work                              // nil: ok
}

// routes are served alike on every framework.
func routes() []route {
	byIP := gate.ByIP(nil)
	return []route{
		{path: "/detail", policies: []limit.Policy{detail}, key: byIP},
		{path: "/window", policies: []limit.Policy{window}, key: byIP},
		{path: "/sliding", policies: []limit.Policy{sliding}, key: byIP},
		{path: "/bucket", policies: []limit.Policy{bucket}, key: byIP},
		{path: "/both", policies: []limit.Policy{bothBucket, bothWindow}, key: byIP},
		{path: "/users/{id}", policies: []limit.Policy{users}, key: gate.ByParam("id")},
		{path: "/key", policies: []limit.Policy{apiKeys}, key: gate.ByHeader(apiKeyHeader)},
		{path: "/cost", query: "?n=N", policies: []limit.Policy{cost}, key: byIP, cost: costOf},
		{path: "/shadow", shadow: []limit.Policy{shadow}, key: byIP},
		{
			path: "/login", query: "?ok=0|1", policies: []limit.Policy{logins}, count: gate.OnlyFailures,
			key: asking(byIP, "ok", 0, 1), work: login,
		},
		{
			path: "/inflight", query: "?ms=N", inflight: inflight,
			key: asking(everyone, "ms", 0, longest.Milliseconds()), work: takeTime,
		},
		{
			method: "POST", path: "/exclusive", query: "?ms=N", exclusive: true,
			key: allowing(gate.ByHeader(orderHeader), "ms", 0, longest.Milliseconds()), work: takeTurn,
		},
		{
			method: "POST", path: "/orders", query: "?ms=N", once: true,
			key: allowing(gate.ByHeader(apiKeyHeader), "ms", 0, longest.Milliseconds()), work: book,
		},
		{path: "/free"},
	}
}

// everyone is the key of a limit on all clients together.
func everyone(gate.Request) (string, error) { return "all", nil }
