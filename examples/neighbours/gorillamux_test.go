package neighbours

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/mux"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/nethttp"
)

func TestMux(t *testing.T) {
	t.Parallel()
	exchange(t, Mux(atMost(t, 6), atMost(t, 2), ok),
		call{"an order", "/orders/7", nil, "", 200},
		call{"another order, the same route", "/orders/8", nil, "", 200},
		call{"the route's third call", "/orders/9", nil, "", 429},
		call{"another route", "/items/tea", nil, "", 200},
		call{"no route", "/nowhere", nil, "", 404},
		call{"another method", "POST /items/tea", nil, "", 405},
		call{"no route, beyond the limit around the router", "/nowhere", nil, "", 429},
		call{"another client", "/orders/7", nil, "192.0.2.2", 200},
	)
}

// The router's Use alone never sees a request that matches no route.
func TestMuxUseMissesWhatIsNotFound(t *testing.T) {
	t.Parallel()
	router := mux.NewRouter()
	router.Use(nethttp.Middleware(gate.RateLimit(atMost(t, 1), gate.ByIP(nil), nil)))
	router.HandleFunc("/", ok)
	exchange(t, router,
		call{"found", "/", nil, "", 200}, call{"found again", "/", nil, "", 429},
		call{"not found", "/nowhere", nil, "", 404}, call{"not found again", "/nowhere", nil, "", 404},
	)
}

func TestMuxKeys(t *testing.T) {
	t.Parallel()
	const unknown = "gate: wrong wiring: "
	serve := func(key gate.Key) http.Handler {
		router := mux.NewRouter()
		shop := router.PathPrefix("/shop").Subrouter()
		shop.Use(nethttp.Middleware(told(key)))
		shop.HandleFunc("/orders/{order:[0-9]+}", ok)
		return router
	}
	inServeMux := func(key gate.Key) http.Handler {
		around := http.NewServeMux()
		around.Handle("/", serve(key))
		return around
	}
	for what, c := range map[string]struct {
		h    http.Handler
		want string
	}{
		"MuxRoute":                  {serve(MuxRoute()), "key:route=/shop/orders/{order:[0-9]+}"},
		"MuxVar":                    {serve(MuxVar("order")), "key:order=7"},
		"MuxVar of another":         {serve(MuxVar("item")), gate.ErrMissing.Error()},
		"MuxRoute around it":        {nethttp.Middleware(told(MuxRoute()))(serve(MuxRoute())), unknown},
		"MuxRoute in a ServeMux":    {inServeMux(MuxRoute()), "key:route=/shop/orders/{order:[0-9]+}"},
		"ByRoute":                   {serve(gate.ByRoute()), unknown},
		"ByParam":                   {serve(gate.ByParam("order")), unknown},
		"ByRoute inside a ServeMux": {inServeMux(gate.ByRoute()), "route=/{...}"}, // one key for all routes
	} {
		if got := keyOf(c.h, "/shop/orders/7"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
}

func TestMuxUseEncodedPath(t *testing.T) {
	t.Parallel()
	router := mux.NewRouter().UseEncodedPath()
	router.Use(nethttp.Middleware(told(MuxVar("item"))))
	router.HandleFunc("/items/{item}", ok)
	if got := keyOf(router, "/items/%41"); got != "key:item=%41" {
		t.Errorf("got the key %q, want the variable as it was sent", got)
	}
}
