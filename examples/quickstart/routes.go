package main

import (
	"net/url"
	"strconv"
	"time"

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
)

const apiKeyHeader = "X-Api-Key"

// route is a path, written as net/http and the gates do, and what limits it.
type route struct {
	path     string
	policies []limit.Policy // none: no limit
	key      gate.Key
	cost     func(gate.Request) (int64, error) // nil: each request costs 1
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
		{path: "/cost", policies: []limit.Policy{cost}, key: byIP, cost: costOf},
		{path: "/free"},
	}
}

// costOf is the n of the query. What the bucket can never grant, the gate
// refuses by itself. Only in a demo does a request say what it costs.
func costOf(r gate.Request) (int64, error) {
	query, err := url.ParseQuery(r.RawQuery())
	if err == nil && len(query["n"]) == 1 {
		n, err := strconv.ParseInt(query.Get("n"), 10, 64)
		if err == nil && n >= 1 {
			return n, nil
		}
	}
	return 0, gate.Refuse(400, "The query has no whole number n of at least 1")
}
