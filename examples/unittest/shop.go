// Package unittest shows how to test limited routes of your own: the routes
// take the limiter, and a test gives them one that needs no Redis.
package unittest

import (
	"net/http"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// Routes are a shop's: logins are limited by user name.
func Routes(logins *limit.Limiter) http.Handler {
	limited := nethttp.Middleware(gate.RateLimit(logins, gate.ByForm("user", nil), nil))
	mux := http.NewServeMux()
	mux.Handle("POST /login", limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})))
	return mux
}
