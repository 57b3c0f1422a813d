package neighbours

import (
	"fmt"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// MuxRoute is gate.ByRoute of gorilla/mux, and MuxVar is ByParam. gorilla/mux
// does not tell net/http its route, so ByRoute and ByParam themselves answer 500;
// in a router that stands in an http.ServeMux at "/", ByRoute is one key for all.
func MuxRoute() gate.Key {
	return gate.Tag("route", nethttp.Key(func(r *http.Request) (string, error) {
		route := mux.CurrentRoute(r)
		if route == nil {
			return "", fmt.Errorf("%w: MuxRoute is mounted outside of the router", gate.ErrWiring)
		}
		return route.GetPathTemplate()
	}))
}

// MuxVar is a variable of the route's template.
func MuxVar(name string) gate.Key {
	return gate.Tag(name, nethttp.Key(func(r *http.Request) (string, error) {
		if value := mux.Vars(r)[name]; value != "" {
			return value, nil
		}
		return "", gate.ErrMissing
	}))
}

// Mux limits each client on each route. The router calls the middleware of Use
// only for requests that match a route: what would be answered 404 or 405 is
// limited by the gate around the router alone.
func Mux(all, each *limit.Limiter, show http.HandlerFunc) http.Handler {
	router := mux.NewRouter()
	perRoute := gate.RateLimit(each, gate.Join(MuxRoute(), gate.ByIP(nil)), nil)
	router.Use(nethttp.Middleware(perRoute))
	router.HandleFunc("/orders/{order:[0-9]+}", show).Methods(http.MethodGet)
	router.HandleFunc("/items/{item}", show).Methods(http.MethodGet)
	return nethttp.Middleware(gate.RateLimit(all, gate.ByIP(nil), nil))(router)
}
