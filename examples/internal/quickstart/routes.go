package quickstart

import (
	"context"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a machine without zones can serve /daily

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
	tokens     = limit.TokenBucket{Rate: 1000, Per: time.Minute, Burst: 1000, MaxDebt: 1000, Unit: "tokens"}
	daily      = limit.CalendarWindow{Limit: 5, Every: limit.Day, Location: shanghai}
	queue      = limit.TokenBucket{Rate: 2, Per: time.Second, Burst: 1}
	strict     = limit.SlidingLog{Limit: 3, Window: 2 * time.Second}
	ban        = limit.Ban{After: 3, Within: 10 * time.Second, For: 5 * time.Second}

	// Of /three, for all requests, a plan and a user.
	threeAll  = limit.FixedWindow{Name: "all", Limit: 10, Window: 10 * time.Second}
	threePlan = limit.FixedWindow{Name: "plan", Limit: 6, Window: 10 * time.Second}
	threeUser = limit.FixedWindow{Name: "user", Limit: 3, Window: 10 * time.Second}
)

// queueWait is how long a request to /queue may wait.
const queueWait = 2 * time.Second

var shanghai = func() *time.Location {
	in, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		panic(err) // time/tzdata has it
	}
	return in
}()

// running is how many requests may be in flight at once.
const running = 2

const (
	apiKeyHeader = "X-Api-Key"
	orderHeader  = "X-Order"
	keyHeader    = "Idempotency-Key"
)

// Route is a path, written as net/http and the gates do, and its gate.
type Route struct {
	Path string
	Gate gate.Gate
	Work func(context.Context, Asked) Result // what is to do with a request that is let through

	method string // "" is GET and HEAD
	query  string // for people: what a request may ask for
	says   string // for people: what limits it
}

// Methods are those that the path is served for.
func (r Route) Methods() []string {
	if r.method == "" {
		return []string{"GET", "HEAD"}
	}
	return []string{r.method}
}

// routes are served alike on every framework.
func routes(w *wiring) []Route {
	byIP, ms := gate.ByIP(nil), longest.Milliseconds()
	return []Route{
		limited(w, "/detail", byIP, detail),
		limited(w, "/window", byIP, window),
		limited(w, "/sliding", byIP, sliding),
		limited(w, "/bucket", byIP, bucket),
		limited(w, "/both", byIP, bothBucket, bothWindow),
		limited(w, "/users/{id}", gate.ByParam("id"), users),
		limited(w, "/key", gate.ByHeader(apiKeyHeader), apiKeys),
		{
			Path: "/cost", query: "?n=N", Work: ok,
			Gate: w.rateLimit("cost", byIP, gate.RateLimitOptions{Cost: costOf}, cost),
			says: describe(cost),
		},
		{
			Path: "/shadow", Work: ok,
			Gate: w.rateLimit("shadow", byIP, gate.RateLimitOptions{}, limit.Shadow(shadow)),
			says: describe(shadow) + ", in the shadow: reported, never enforced",
		},
		{
			Path: "/login", query: "?ok=0|1", Work: login,
			Gate: w.rateLimit("login", asking(byIP, "ok", 1), gate.RateLimitOptions{Count: gate.OnlyFailures}, logins),
			says: describe(logins) + ", failures alone",
		},
		{
			method: "POST", Path: "/tokens", query: "?estimate=N&used=M", Work: useTokens,
			Gate: w.rateLimit("tokens", asking(gate.ByHeader(apiKeyHeader), "used", mostTokens), gate.RateLimitOptions{Cost: estimateOf, InContext: true}, tokens),
			says: describe(tokens) + ", debt of up to 1000: takes N, settles to M",
		},
		limited(w, "/daily", byIP, daily),
		{
			Path: "/three/{plan}/{user}", Work: ok,
			Gate: w.rateLimits("three", []gate.Key{gate.Everyone, gate.ByParam("plan"), gate.ByParam("user")}, threeAll, threePlan, threeUser),
			says: "10 for all, 6 a plan, 3 a user in 10 s, all or nothing",
		},
		{
			Path: "/queue", Work: ok,
			Gate: w.rateLimit("queue", byIP, gate.RateLimitOptions{Wait: queueWait}, queue),
			says: describe(queue) + ", waits up to " + span(queueWait),
		},
		{
			Path: "/ban", Work: ok,
			Gate: w.rateLimit("ban", byIP, gate.RateLimitOptions{}, limit.WithBan(strict, ban)),
			says: fmt.Sprintf("%s; denied %d times in %s, banned for %s", describe(strict), ban.After, span(ban.Within), span(ban.For)),
		},
		{
			Path: "/inflight", query: "?ms=N", Work: takeTime,
			Gate: w.concurrency("inflight", asking(gate.Everyone, "ms", ms), running),
			says: fmt.Sprintf("at most %d in flight, all clients together", running),
		},
		{
			method: "POST", Path: "/exclusive", query: "?ms=N", Work: takeTurn,
			Gate: w.exclusive("exclusive", allowing(gate.ByHeader(orderHeader), "ms", ms)),
			says: "one at a time for each X-Order, the others get 409",
		},
		{
			method: "POST", Path: "/orders", query: "?ms=N", Work: book,
			Gate: w.idempotent("orders", allowing(gate.ByHeader(apiKeyHeader), "ms", ms)),
			says: "one run for each Idempotency-Key of an X-Api-Key",
		},
		{Path: "/free", Gate: gate.Chain(), Work: ok, says: "no limit"},
	}
}

// limited is a route with policies and nothing else.
func limited(w *wiring, path string, key gate.Key, policies ...limit.Policy) Route {
	fixed, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/{")
	name := strings.ReplaceAll(fixed, "/", "-")
	return Route{
		Path: path, Work: ok,
		Gate: w.rateLimit(name, key, gate.RateLimitOptions{}, policies...),
		says: describe(policies...),
	}
}

// describe says in words what policies limit.
func describe(policies ...limit.Policy) string {
	words := make([]string, len(policies))
	for i, p := range policies {
		algorithm, numbers := terms(p)
		words[i] = algorithm + ", " + numbers
	}
	return strings.Join(words, " AND ")
}

func terms(p limit.Policy) (algorithm, numbers string) {
	switch p := p.(type) {
	case limit.TokenBucket:
		return "token bucket", fmt.Sprintf("%d per %s, burst %d", p.Rate, unit(p.Per), p.Burst)
	case limit.FixedWindow:
		return "fixed window", fmt.Sprintf("%d in %s", p.Limit, span(p.Window))
	case limit.SlidingWindow:
		return "sliding window", fmt.Sprintf("%d in %s", p.Limit, span(p.Window))
	case limit.CalendarWindow:
		return "calendar window", fmt.Sprintf("%d a day in %s", p.Limit, p.Location)
	case limit.SlidingLog:
		return "sliding log", fmt.Sprintf("%d in %s", p.Limit, span(p.Window))
	}
	return "policy", p.PolicyName()
}

func unit(d time.Duration) string {
	if d == time.Second {
		return "second"
	}
	return span(d)
}

func span(d time.Duration) string {
	return fmt.Sprintf("%g s", d.Seconds())
}
