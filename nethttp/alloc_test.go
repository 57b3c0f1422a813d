package nethttp_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
	"github.com/neap-go/neap/nethttp"
)

// silent is a ResponseWriter that allocates nothing itself.
type silent struct{ header http.Header }

func (s silent) Header() http.Header         { return s.header }
func (s silent) Write(p []byte) (int, error) { return len(p), nil }
func (s silent) WriteHeader(int)             {}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// reading is a gate that reads what the usual keys are made from.
type reading struct{ pass gate.Pass }

func (g reading) Enter(q gate.Request) gate.Pass {
	_, _, _, _ = q.RemoteAddr(), q.Header("X-Forwarded-For"), q.Route(), q.Param("id")
	return g.pass
}

func withFields(n int) gate.Pass {
	var p gate.Pass
	for i := range n {
		p.Header = append(p.Header, gate.Field{Name: "X-Field-" + strconv.Itoa(i), Value: "1", Add: i%2 == 0})
	}
	return p
}

func everyone(gate.Request) (string, error) { return "everyone", nil }

func routed() *http.Request {
	r := httptest.NewRequest("GET", "/users/7", nil)
	r.Pattern = "GET /users/{id}"
	r.SetPathValue("id", "7")
	return r
}

func TestMiddlewareAllocations(t *testing.T) {
	r := routed()
	for fields, most := range map[int]float64{0: 0, 1: 1, 2: 2, 5: 5} {
		h := nethttp.Middleware(reading{withFields(fields)})(nothing)
		w := silent{http.Header{}}
		got := testing.AllocsPerRun(100, func() {
			clear(w.header)
			h.ServeHTTP(w, r)
		})
		if got > most {
			t.Errorf("with %d header fields the middleware allocates %v times, want %v at most", fields, got, most)
		}
	}
}

// TestAdmittedWithoutACopy: a limit passes on the request that it got. So the middleware
// allocates only what the gate allocates.
func TestAdmittedWithoutACopy(t *testing.T) { //nolint:paralleltest // it counts allocations
	g := gate.RateLimit(limiter(1<<40), everyone, nil)
	r, w := routed(), silent{http.Header{}}
	var asked gate.Request
	asking := gateFunc(func(q gate.Request) gate.Pass {
		asked = q
		return gate.Pass{}
	})
	nethttp.Middleware(asking)(nothing).ServeHTTP(w, r)
	var handled *http.Request
	h := nethttp.Middleware(g)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { handled = r }))
	for range 1000 { // the first of a gate are marked, to see whether it is mounted twice
		h.ServeHTTP(w, r)
	}
	own := testing.AllocsPerRun(200, func() {
		clear(w.header)
		gatehttp.Apply(w.header, g.Enter(asked).Header)
	})
	whole := testing.AllocsPerRun(200, func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	})
	if handled != r {
		t.Error("the handler got a copy of the request, want the request itself")
	}
	if whole > own {
		t.Errorf("the middleware allocates %v times, want the %v times of the gate alone at most", whole, own)
	}
}

func BenchmarkMiddleware(b *testing.B) {
	r, w := routed(), silent{http.Header{}}
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", nothing)
	limited := nethttp.Middleware(gate.RateLimit(limiter(1<<40), everyone, nil))
	leaving := gate.Pass{Capture: 100, Leave: func(*gate.Reply) {}}
	for _, c := range []struct {
		name string
		h    http.Handler
	}{
		{"NoGate", nothing},
		{"ZeroPass", nethttp.Middleware(reading{})(nothing)},
		{"TwoFields", nethttp.Middleware(reading{withFields(2)})(nothing)},
		{"Leave", nethttp.Middleware(reading{leaving})(nothing)},
		{"RateLimit", limited(nothing)},
		{"TwoRateLimits", limited(limited(nothing))},
		{"AroundServeMux", nethttp.Middleware(reading{})(mux)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				c.h.ServeHTTP(w, r)
			}
		})
	}
}
