package neighbours

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// Chi limits each client by the address that chi has found, and each order by
// its number. Middleware of the outermost router's Use runs before chi has found
// the route: there ByRoute and ByParam answer 500.
func Chi(clients, orders *limit.Limiter, show http.HandlerFunc) http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.ClientIPFromXFF("10.0.0.0/8")) // your proxies, and nobody else
	client := gate.ByIP(&gate.IPOptions{FromContext: middleware.GetClientIPAddr})
	r.Use(nethttp.Middleware(gate.RateLimit(clients, client, nil)))

	order := gate.RateLimit(orders, gate.ByParam("order"), nil)
	r.With(nethttp.Middleware(order)).Get("/orders/{order}", show)
	return r
}

// ChiParam is for a parameter with a pattern, as in {order:[0-9]+}, and for a wildcard,
// "*". gate.ByParam does not find these, and answers 500.
func ChiParam(name string) gate.Key {
	return gate.Tag(name, nethttp.Key(func(r *http.Request) (string, error) {
		if value := chi.URLParam(r, name); value != "" {
			return value, nil
		}
		return "", gate.ErrMissing
	}))
}

// ChiRealIP is for routers that still have RealIP, which is deprecated: it writes
// into RemoteAddr whatever address the client has put into a header. Mount the
// gate outside of it, so that the gate sees the peer of the socket.
func ChiRealIP(limiter *limit.Limiter, client gate.Key, show http.HandlerFunc) http.Handler {
	r := chi.NewRouter()
	r.Use(nethttp.Middleware(gate.RateLimit(limiter, client, nil)))
	r.Use(middleware.RealIP) //nolint:staticcheck // it is what this recipe is about
	r.Get("/", show)
	return r
}
