package nethttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

func limiter(n int64) *limit.Limiter {
	l, err := limit.NewLocal("example", []limit.Policy{
		limit.FixedWindow{Name: "hourly", Limit: n, Window: time.Hour},
	}, nil)
	if err != nil {
		panic(err)
	}
	return l
}

func ExampleMiddleware() {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello")
	})
	mux := http.NewServeMux()
	mux.Handle("GET /hello", nethttp.Middleware(gate.RateLimit(limiter(2), gate.ByIP(nil), nil))(hello))

	for range 3 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/hello", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "hourly";r=1;t=3600
	// 200 "hourly";r=0;t=3600
	// 429 "hourly";r=0;t=3600
}

// retired is an endpoint: it answers every request itself.
type retired struct{}

func (retired) Serve(gate.Request) gate.Reply {
	return gate.Reply{Status: http.StatusGone}
}

func ExampleHandler() {
	mux := http.NewServeMux()
	mux.Handle("/retired", nethttp.Handler(retired{}))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/retired", nil))
	fmt.Println(w.Code)
	// Output: 410
}

func ExampleKey() {
	byUser := gate.Tag("user", nethttp.Key(func(r *http.Request) (string, error) {
		user, _, ok := r.BasicAuth()
		if !ok {
			return "", gate.Refuse(http.StatusUnauthorized, "Sign in first")
		}
		return user, nil
	}))
	h := nethttp.Middleware(gate.RateLimit(limiter(1), byUser, nil))(http.NotFoundHandler())

	for _, user := range []string{"", "alice", "alice", "bob"} {
		r := httptest.NewRequest("GET", "/", nil)
		if user != "" {
			r.SetBasicAuth(user, "secret")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 401
	// 404
	// 429
	// 404
}

func ExampleContext() {
	options := &gate.RateLimitOptions{Skip: func(q gate.Request) bool {
		r, ok := nethttp.Context(q)
		return ok && r.TLS != nil
	}}
	h := nethttp.Middleware(gate.RateLimit(limiter(1), gate.ByIP(nil), options))(http.NotFoundHandler())

	for _, url := range []string{"http://example.com/", "http://example.com/", "https://example.com/"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", url, nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 404
	// 429
	// 404
}
