package neighbours

import (
	"fmt"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// MuxRoute is the key by the route of gorilla/mux. gorilla/mux does not tell net/http
// its route, so gate.ByRoute and gate.ByParam answer 500. If the router stands in an
// http.ServeMux at "/", gate.ByRoute is one key for all routes.
func MuxRoute() gate.Key {
	return gate.Tag("route", nethttp.Key(func(r *http.Request) (string, error) {
		route := mux.CurrentRoute(r)
		if route == nil {
			return "", fmt.Errorf("%w: MuxRoute is mounted outside of the router", gate.ErrWiring)
		}
		return route.GetPathTemplate()
	}))
}

// MuxVar is the key by a variable of the route, as gate.ByParam is elsewhere.
func MuxVar(name string) gate.Key {
	return gate.Tag(name, nethttp.Key(func(r *http.Request) (string, error) {
		if value := mux.Vars(r)[name]; value != "" {
			return value, nil
		}
		return "", gate.ErrMissing
	}))
}

// Mux limits each client on each route. The router calls the middleware of Use
// only for requests that match a route. Only the gate around the router limits what
// is answered 404 or 405.
func Mux(all, each *limit.Limiter, show http.HandlerFunc) http.Handler {
	router := mux.NewRouter()
	perRoute := gate.RateLimit(each, gate.Join(MuxRoute(), gate.ByIP(nil)), nil)
	router.Use(nethttp.Middleware(perRoute))
	router.HandleFunc("/orders/{order:[0-9]+}", show).Methods(http.MethodGet)
	router.HandleFunc("/items/{item}", show).Methods(http.MethodGet)
	return nethttp.Middleware(gate.RateLimit(all, gate.ByIP(nil), nil))(router)
}
