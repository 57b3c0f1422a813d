package gate_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// A handler behind gate.RateLimit reads the gate's decision if the gate has InContext.
func ExampleRateLimit_inContext() {
	limiter, err := limit.NewLocal("api", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	limited := nethttp.Middleware(gate.RateLimit(limiter, gate.ByIP(nil), &gate.RateLimitOptions{InContext: true}))
	h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d, ok := limit.FromContext(r.Context()); ok {
			fmt.Println(d.Remaining, "of", d.Limit, "left")
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	// Output: 9 of 10 left
}
