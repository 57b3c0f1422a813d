package neighbours

import (
	"net/http"
	"strings"
	"testing"

	"github.com/zeromicro/go-zero/core/conf"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/pathvar"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/nethttp"
)

// zero is a server of go-zero with its default middleware.
func zero(t *testing.T, wire func(server *rest.Server)) http.Handler {
	t.Helper()
	var c rest.RestConf
	if err := conf.FillDefault(&c); err != nil {
		t.Fatal(err)
	}
	c.Name, c.Mode, c.Middlewares.Shedding = "shop", "test", false
	server, err := rest.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	logx.Disable()
	wire(server)
	built, err := rest.NewServerless(server)
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(built.Serve)
}

func TestZero(t *testing.T) {
	t.Parallel()
	h := zero(t, func(server *rest.Server) { Zero(server, atMost(t, 3), atMost(t, 1), ok) })
	exchange(t, h,
		call{"an order", "/orders/7", nil, "", 200},
		call{"the same order in another spelling", "//orders/7", nil, "", 429},
		call{"another order", "/orders/8", nil, "", 200},
		call{"the route's fourth call", "/orders/9", nil, "", 429},
		call{"another route", "/items/tea", nil, "", 200},
		call{"another client", "/orders/9", nil, "192.0.2.2", 200},
		call{"no route", "/nowhere", nil, "", 404},
		call{"another method", "POST /orders/10", nil, "", 405},
	)
}

// TestZeroSpellings: go-zero matches the cleaned and decoded path, so all of these are one
// route and one order. They are several paths.
func TestZeroSpellings(t *testing.T) {
	t.Parallel()
	serve := func(key gate.Key) http.Handler {
		return zero(t, func(server *rest.Server) {
			server.Use(ZeroRoutes(server))
			server.Use(rest.ToMiddleware(nethttp.Middleware(told(key))))
			server.AddRoute(rest.Route{Method: http.MethodGet, Path: "/v1/orders/:id", Handler: ok})
		})
	}
	order, path := serve(gate.Join(gate.ByRoute(), gate.ByParam("id"))), serve(gate.ByPath())
	paths := map[string]bool{}
	for _, target := range []string{
		"/v1/orders/7", "/v1/orders/7/", "//v1/orders/7", "/v1//orders///7", "/./v1/orders/7", "/x/../v1/orders/7", "/../v1/orders/7",
		"/v1/orders/8/../7", "/v1/orders/8/%2e%2e/7", "/v1/orders/%37", "/v1/%6Frders/7", "/v1%2Forders%2F7", "/v1/orders/7?id=8", "http://shop.example/v1/orders/7",
	} {
		if got, want := keyOf(order, target), "join=21:route=/v1/orders/{id}10:param:id=7"; got != want {
			t.Errorf("%s: got the key %q, want %q", target, got, want)
		}
		paths[keyOf(path, target)] = true
	}
	if len(paths) < 8 {
		t.Errorf("got the keys %v by ByPath, want many: the page warns of it", paths)
	}
}

// TestZeroRoutes wherever a gate is mounted, and what it is without ZeroRoutes.
func TestZeroRoutes(t *testing.T) {
	t.Parallel()
	const unknown = "gate: wrong wiring: "
	serve := func(knows bool, where string, key gate.Key) http.Handler {
		tell := rest.ToMiddleware(nethttp.Middleware(told(key)))
		return zero(t, func(server *rest.Server) {
			if knows {
				server.Use(ZeroRoutes(server))
			}
			routes := []rest.Route{{Method: http.MethodGet, Path: "/orders/:id/", Handler: ok}, {Method: http.MethodGet, Path: "/", Handler: ok}}
			switch where {
			case "Use":
				server.Use(tell)
			case "WithMiddleware":
				routes = rest.WithMiddleware(tell, routes...)
			case "Handler":
				routes[0].Handler = nethttp.Middleware(told(key))(routes[0].Handler).ServeHTTP
			}
			server.AddRoutes(routes, rest.WithPrefix("/v1"))
			server.AddRoute(rest.Route{Method: http.MethodPost, Path: "/v1/orders/:order", Handler: ok})
		})
	}
	for _, where := range []string{"Use", "WithMiddleware", "Handler"} {
		for what, c := range map[string]struct {
			key           gate.Key
			with, without string
		}{
			"ByRoute":            {gate.ByRoute(), "route=/v1/orders/{id}", unknown},
			"ByParam":            {gate.ByParam("id"), "param:id=a b", unknown},
			"ByParam of another": {gate.ByParam("order"), unknown, unknown},
			"ByIP":               {gate.ByIP(nil), "ip=192.0.2.1", "ip=192.0.2.1"},
		} {
			for knows, want := range map[bool]string{true: c.with, false: c.without} {
				if got := keyOf(serve(knows, where, c.key), "/v1/orders/a%20b"); !strings.HasPrefix(got, want) {
					t.Errorf("%s in %s, with ZeroRoutes: %t: got %q, want %q", what, where, knows, got, want)
				}
			}
		}
	}
	if got := keyOf(serve(true, "Use", gate.ByRoute()), "/v1/"); got != "route=/v1" {
		t.Errorf("got %q, want the prefix alone", got)
	}
	if got := zeroPattern("/"); got != "/{$}" {
		t.Errorf("got %q for the root, want /{$}", got)
	}
}

// TestZeroWithoutTheRoute has a plain 500, and the hook has the remedy.
func TestZeroWithoutTheRoute(t *testing.T) {
	t.Parallel()
	var heard []string
	hear := &gate.RateLimitOptions{OnError: func(_ gate.Request, err error) { heard = append(heard, err.Error()) }}
	h := zero(t, func(server *rest.Server) {
		server.Use(rest.ToMiddleware(nethttp.Middleware(gate.RateLimit(atMost(t, 1), gate.ByParam("id"), hear))))
		server.AddRoute(rest.Route{Method: http.MethodGet, Path: "/orders/:id", Handler: func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(pathvar.Vars(r)["id"]))
		}})
	})
	exchange(t, h, call{"no route", "/orders/7", nil, "", 500})
	if body := keyOf(h, "/orders/7"); strings.Contains(body, "docs") || len(heard) != 2 || !strings.Contains(heard[0], "must also tell its route to net/http, as docs/neighbours.md shows") {
		t.Errorf("the client got %q, and the hook %q, want nothing for the client and the remedy for the hook", body, heard)
	}
}
