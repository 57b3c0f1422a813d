package gate_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// from sends a request from an address to a handler behind a gate, and prints the status of
// the answer.
func from(g gate.Gate, address string) {
	h := nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = address + ":50000"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(address, w.Code)
}

// anHour stands for limit.New, which takes a Redis client as well.
func anHour(name string, n int64) *limit.Limiter {
	limiter, err := limit.NewLocal(name, []limit.Policy{limit.FixedWindow{Name: name, Limit: n, Window: time.Hour}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	return limiter
}

func ExampleBlock() {
	var blocked gate.List
	err := blocked.Swap(nil, []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}) // again when the list has changed
	if err != nil {
		log.Fatal(err)
	}
	g := gate.Chain(
		gate.Block(&blocked, gate.ByIP(nil), nil), // outside of the limit: what it refuses takes nothing
		gate.RateLimit(anHour("api", 1), gate.ByIP(nil), nil),
	)

	for _, address := range []string{"198.51.100.9", "203.0.113.7", "203.0.113.7"} {
		from(g, address)
	}
	// Output:
	// 198.51.100.9 403
	// 203.0.113.7 200
	// 203.0.113.7 429
}

// The addresses of an office are not limited.
func ExampleList_Skip() {
	var office gate.List
	if err := office.Swap(nil, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}); err != nil {
		log.Fatal(err)
	}
	key := gate.ByIP(nil)
	g := gate.RateLimit(anHour("api", 1), key, &gate.RateLimitOptions{Skip: office.Skip(key)})

	for _, address := range []string{"192.0.2.1", "192.0.2.1", "203.0.113.7", "203.0.113.7"} {
		from(g, address)
	}
	// Output:
	// 192.0.2.1 200
	// 192.0.2.1 200
	// 203.0.113.7 200
	// 203.0.113.7 429
}

// A request counts for everybody and for its address. A request that the limit of its
// address denies takes nothing from everybody's.
func ExampleRateLimits() {
	g := gate.RateLimits(
		gate.RateLimit(anHour("everybody", 2), gate.Everyone, nil),
		gate.RateLimit(anHour("address", 1), gate.ByIP(nil), nil),
	)

	for _, address := range []string{"203.0.113.7", "203.0.113.7", "203.0.113.8", "203.0.113.9"} {
		from(g, address)
	}
	// Output:
	// 203.0.113.7 200
	// 203.0.113.7 429
	// 203.0.113.8 200
	// 203.0.113.9 429
}
