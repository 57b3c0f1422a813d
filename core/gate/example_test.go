package gate_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/nethttp"
)

// newLimiter is used here in place of limit.New, which also takes a Redis client.
func newLimiter(name string, policies ...limit.Policy) *limit.Limiter {
	l, err := limit.NewLocal(name, policies, nil)
	if err != nil {
		log.Fatal(err)
	}
	return l
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "hello")
})

// send prints the answer's status and the named header fields.
func send(h http.Handler, r *http.Request, fields ...string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	line := fmt.Sprint(w.Code)
	for _, f := range fields {
		if v := w.Header().Values(f); len(v) > 0 {
			line += " " + f + ": " + strings.Join(v, ", ")
		}
	}
	fmt.Println(line)
}

func get(target string) *http.Request { return httptest.NewRequest(http.MethodGet, target, nil) }

func ExampleRateLimit() {
	limiter := newLimiter("detail", limit.FixedWindow{Name: "hourly", Limit: 2, Window: time.Hour})
	perIP := gate.RateLimit(limiter, gate.ByIP(nil), nil)

	h := nethttp.Middleware(perIP)(hello)
	for range 3 {
		send(h, get("/detail"), "RateLimit", "Retry-After")
	}
	// Output:
	// 200 RateLimit: "hourly";r=1;t=3600
	// 200 RateLimit: "hourly";r=0;t=3600
	// 429 RateLimit: "hourly";r=0;t=3600 Retry-After: 3600
}

// Expensive requests take more permits, and plans have policies of their own.
func ExampleRateLimit_costAndPlan() {
	free := newLimiter("export", limit.FixedWindow{Name: "free", Limit: 10, Window: time.Hour})
	gold := []limit.Policy{limit.FixedWindow{Name: "gold", Limit: 100, Window: time.Hour}}
	g := gate.RateLimit(free, gate.ByHeader("X-Api-Key"), &gate.RateLimitOptions{
		Policies: func(r gate.Request) ([]limit.Policy, error) {
			if strings.HasPrefix(r.Header("X-Api-Key")[0], "gold-") {
				return gold, nil
			}
			return nil, nil // those of the limiter
		},
		Cost: func(r gate.Request) (int64, error) {
			if r.Path() == "/export" {
				return 10, nil
			}
			return 1, nil
		},
	})

	h := nethttp.Middleware(g)(hello)
	for _, key := range []string{"alice", "gold-bob"} {
		for range 2 {
			r := get("/export")
			r.Header.Set("X-Api-Key", key)
			send(h, r, "RateLimit")
		}
	}
	// Output:
	// 200 RateLimit: "free";r=0;t=3600
	// 429 RateLimit: "free";r=0;t=3600
	// 200 RateLimit: "gold";r=90;t=3600
	// 200 RateLimit: "gold";r=80;t=3600
}

// This limits failed logins: a login that succeeds gives its permit back.
func ExampleOnlyFailures() {
	limiter := newLimiter("login", limit.FixedWindow{Name: "failures", Limit: 2, Window: time.Hour})
	g := gate.RateLimit(limiter, gate.ByIP(nil), &gate.RateLimitOptions{Count: gate.OnlyFailures})

	h := nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("password") != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	for _, password := range []string{"secret", "secret", "guess", "secret", "guess", "secret"} {
		send(h, get("/login?password="+password))
	}
	// Output:
	// 200
	// 200
	// 401
	// 200
	// 401
	// 429
}

// One Render serves every framework. Fields such as Retry-After are added to what it
// returns.
func ExampleRateLimit_render() {
	limiter := newLimiter("detail", limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour})
	g := gate.RateLimit(limiter, gate.ByIP(nil), &gate.RateLimitOptions{
		Render: func(d gate.Denial) gate.Reply {
			return gate.Reply{
				Header: []gate.Field{{Name: "Content-Type", Value: "text/plain; charset=utf-8"}},
				Body:   []byte("Please come back later.\n"),
			}
		},
	})

	h := nethttp.Middleware(g)(hello)
	for range 2 {
		send(h, get("/detail"), "Content-Type", "Retry-After")
	}
	// Output:
	// 200 Content-Type: text/plain; charset=utf-8
	// 429 Content-Type: text/plain; charset=utf-8 Retry-After: 3600
}

// This is a limit for each address and one for each user, in front of the same route. The
// client is told of both.
func ExampleChain() {
	byIP := newLimiter("ip", limit.TokenBucket{Name: "burst", Rate: 100, Per: time.Second})
	byUser := newLimiter("user", limit.FixedWindow{Name: "daily", Limit: 1, Window: 24 * time.Hour})
	g := gate.Chain(
		gate.RateLimit(byIP, gate.ByIP(nil), nil),
		gate.RateLimit(byUser, gate.ByParam("id"), nil),
	)

	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", nethttp.Middleware(g)(hello))
	for range 2 {
		send(mux, get("/users/alice"), "RateLimit-Policy")
	}
	send(mux, get("/users/bob"))
	// Output:
	// 200 RateLimit-Policy: "burst";q=100;w=1, "daily";q=1;w=86400
	// 429 RateLimit-Policy: "burst";q=100;w=1, "daily";q=1;w=86400
	// 200
}

// Behind a reverse proxy the peer is the proxy, so say that its X-Forwarded-For is to be
// believed.
func ExampleByIP() {
	limiter := newLimiter("detail", limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour})
	g := gate.RateLimit(limiter, gate.ByIP(&gate.IPOptions{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	}), nil)

	h := nethttp.Middleware(g)(hello)
	for _, forwarded := range []string{"203.0.113.9", "203.0.113.10", "198.51.100.1, 203.0.113.9"} {
		r := get("/detail") // from 192.0.2.1
		r.Header.Set("X-Forwarded-For", forwarded)
		send(h, r)
	}
	// Output:
	// 200
	// 200
	// 429
}

// A load balancer of a cloud changes its address, so you can only count: two proxies have
// appended theirs. What a client writes in front of them changes nothing.
func ExampleByIP_trustedHops() {
	limiter := newLimiter("detail", limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour})
	g := gate.RateLimit(limiter, gate.ByIP(&gate.IPOptions{TrustedHops: 2}), nil)

	h := nethttp.Middleware(g)(hello)
	for _, forwarded := range []string{"203.0.113.9, 192.0.2.7", "198.51.100.1, 203.0.113.9, 192.0.2.8", "203.0.113.10, 192.0.2.7"} {
		r := get("/detail")
		r.Header.Set("X-Forwarded-For", forwarded)
		send(h, r)
	}
	// Output:
	// 200
	// 429
	// 200
}

// A caller with an API key has a limit of its own. Without one it shares the limit of its
// address.
func ExampleFirstOf() {
	limiter := newLimiter("api", limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour})
	g := gate.RateLimit(limiter, gate.FirstOf(gate.ByHeader("X-Api-Key"), gate.ByIP(nil)), nil)

	h := nethttp.Middleware(g)(hello)
	for _, keys := range [][]string{{"alice"}, {}, {}, {"alice"}, {"bob", "alice"}} {
		r := get("/")
		r.Header["X-Api-Key"] = keys
		send(h, r)
	}
	// Output:
	// 200
	// 200
	// 429
	// 429
	// 400
}

// This is a limit for each address on each route.
func ExampleJoin() {
	limiter := newLimiter("routes", limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour})
	g := gate.RateLimit(limiter, gate.Join(gate.ByRoute(), gate.ByIP(nil)), nil)

	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", nethttp.Middleware(g)(hello))
	mux.Handle("GET /orders/{id}", nethttp.Middleware(g)(hello))
	for _, path := range []string{"/users/1", "/orders/1", "/users/2"} {
		send(mux, get(path))
	}
	// Output:
	// 200
	// 200
	// 429
}

// Attempts to sign in are limited for each account, from all addresses together.
func ExampleByJSON() {
	limiter := newLimiter("login", limit.FixedWindow{Name: "attempts", Limit: 1, Window: time.Hour})
	g := gate.RateLimit(limiter, gate.ByJSON("/account", nil), nil)

	h := nethttp.Middleware(g)(hello)
	for _, body := range []string{`{"account":"alice"}`, `{"account":"bob"}`, `{"account":"alice"}`, `{}`} {
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		send(h, r)
	}
	// Output:
	// 200
	// 200
	// 429
	// 400
}

// This is a key of your own: the user of a session.
func ExampleTag() {
	limiter := newLimiter("users", limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour})
	bySession := gate.Tag("user", nethttp.Key(func(r *http.Request) (string, error) {
		cookie, err := r.Cookie("session")
		switch {
		case err != nil:
			return "", gate.ErrMissing
		case !strings.HasPrefix(cookie.Value, "signed."):
			return "", gate.Refuse(403, "The session is not a valid one")
		}
		return strings.TrimPrefix(cookie.Value, "signed."), nil
	}))
	g := gate.RateLimit(limiter, gate.FirstOf(bySession, gate.ByIP(nil)), nil)

	h := nethttp.Middleware(g)(hello)
	for _, session := range []string{"signed.alice", "signed.bob", "forged", ""} {
		r := get("/")
		if session != "" {
			r.AddCookie(&http.Cookie{Name: "session", Value: session})
		}
		send(h, r)
	}
	// Output:
	// 200
	// 200
	// 403
	// 200
}

func ExampleConcurrency() {
	exports, err := inflight.NewLocal("exports", 1, nil) // or New, on Redis
	if err != nil {
		log.Fatal(err)
	}
	oneAtATime := nethttp.Middleware(gate.Concurrency(exports, gate.ByIP(nil), nil))

	var h http.Handler
	h = oneAtATime(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		send(h, get("/export"), "Retry-After") // while this one runs
		fmt.Fprintln(w, "done")
	}))
	send(h, get("/export"))
	send(oneAtATime(hello), get("/export"))
	// Output:
	// 429 Retry-After: 1
	// 200
	// 200
}

// newLocker has a Redis of its own, which ends with the tests.
func newLocker(name string) *lock.Locker {
	l, err := lock.New(storetest.Embedded(), name, nil)
	if err != nil {
		log.Fatal(err)
	}
	return l
}

func ExampleExclusive() {
	orders := newLocker("orders") // or lock.New
	mux := http.NewServeMux()
	one := nethttp.Middleware(gate.Exclusive(orders, gate.ByParam("order"), nil))
	mux.Handle("GET /orders/{order}/pay", one(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		send(mux, get("/orders/17/pay"), "Retry-After") // while this one runs
		held, _ := lock.FromContext(r.Context())
		fmt.Println(held.Err(), held.Fence() > 0)
	})))
	send(mux, get("/orders/17/pay"))
	// Output:
	// 409 Retry-After: 1
	// <nil> true
	// 200
}
