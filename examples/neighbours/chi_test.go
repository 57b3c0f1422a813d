package neighbours

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/nethttp"
)

func TestChi(t *testing.T) {
	t.Parallel()
	h := Chi(atMost(t, 3), atMost(t, 2), ok)
	by := func(client string) http.Header { return line("X-Forwarded-For", client) }
	exchange(t, h,
		call{"order 7", "/orders/7", by("192.0.2.7"), "10.0.0.1", 200},
		call{"order 7 again", "/orders/7", by("192.0.2.7"), "10.0.0.2", 200},
		call{"a third time", "/orders/7", by("192.0.2.7"), "10.0.0.1", 429},
		call{"another order, but the client has made three calls", "/orders/8", by("192.0.2.7"), "10.0.0.1", 429},
		call{"what the client writes before the proxy's address changes nothing", "/orders/8", by("203.0.113.1, 192.0.2.7"), "10.0.0.1", 429},
		call{"another client", "/orders/8", by("192.0.2.8"), "10.0.0.1", 200},
		call{"one that does not come through a proxy is not believed", "/orders/9", by("203.0.113.1"), "192.0.2.9", 200},
		call{"the same", "/orders/9", by("203.0.113.2"), "192.0.2.9", 200},
		call{"the same", "/orders/10", by("203.0.113.3"), "192.0.2.9", 200},
		call{"the same, for the fourth time", "/orders/10", by("203.0.113.4"), "192.0.2.9", 429},
	)
}

// What a gate knows of chi's route depends on where it is mounted.
func TestChiRoutes(t *testing.T) {
	t.Parallel()
	mount := func(key gate.Key) (outermost, within, with, wild http.Handler) {
		tell := nethttp.Middleware(told(key))
		r := chi.NewRouter()
		r.Use(tell)
		r.Get("/t/{tenant}/orders/{order:[0-9]+}", ok)
		outermost = r

		r = chi.NewRouter()
		r.Route("/t/{tenant}", func(r chi.Router) {
			r.Use(tell)
			r.Get("/orders/{order:[0-9]+}", ok)
		})
		within = r

		r = chi.NewRouter()
		r.Route("/t/{tenant}", func(r chi.Router) {
			r.With(tell).Get("/orders/{order:[0-9]+}", ok)
		})
		with = r

		r = chi.NewRouter()
		r.With(tell).Get("/t/*", ok)
		return outermost, within, with, r
	}
	const unknown = "gate: wrong wiring: "
	for _, c := range []struct {
		what                          string
		key                           gate.Key
		outermost, within, with, wild string
	}{
		{"ByRoute", gate.ByRoute(), unknown, "route=/t/{tenant}/*", "route=/t/{tenant}/orders/{order:[0-9]+}", "route=/t/*"},
		{"ByParam of the group", gate.ByParam("tenant"), unknown, "param:tenant=acme", "param:tenant=acme", unknown},
		{"ByParam with a pattern", gate.ByParam("order"), unknown, unknown, unknown, unknown},
		{"ChiParam", ChiParam("order"), gate.ErrMissing.Error(), gate.ErrMissing.Error(), "key:order=7", gate.ErrMissing.Error()},
		{"ChiParam of the wildcard", ChiParam("*"), gate.ErrMissing.Error(), gate.ErrMissing.Error(), gate.ErrMissing.Error(), "key:*=acme/orders/7"},
	} {
		outermost, within, with, wild := mount(c.key)
		for where, pair := range map[string]struct {
			h    http.Handler
			want string
		}{
			"the outermost Use": {outermost, c.outermost}, "the group's Use": {within, c.within}, "With": {with, c.with}, "a wildcard": {wild, c.wild},
		} {
			if got := keyOf(pair.h, "/t/acme/orders/7"); !strings.HasPrefix(got, pair.want) {
				t.Errorf("%s in %s: got %q, want %q", c.what, where, got, pair.want)
			}
		}
	}
}

// A gate inside of RealIP has a new key for each address that a client makes up, and
// behind a proxy too: RealIP takes the leftmost address. A gate outside has one key.
func TestChiRealIP(t *testing.T) {
	t.Parallel()
	behind := gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	inside := func(client gate.Key) http.Handler {
		r := chi.NewRouter()
		r.Use(middleware.RealIP) //nolint:staticcheck // its trap
		r.Use(nethttp.Middleware(gate.RateLimit(atMost(t, 1), client, nil)))
		r.Get("/", ok)
		return r
	}
	for what, c := range map[string]struct {
		h      http.Handler
		peer   string
		second int
	}{
		"inside, without a proxy":  {inside(gate.ByIP(nil)), "192.0.2.9", 200},
		"inside, behind a proxy":   {inside(behind), "10.0.0.1", 200},
		"outside, without a proxy": {ChiRealIP(atMost(t, 1), gate.ByIP(nil), ok), "192.0.2.9", 429},
		"outside, behind a proxy":  {ChiRealIP(atMost(t, 1), behind, ok), "10.0.0.1", 429},
	} {
		exchange(t, c.h,
			call{what, "/", line("X-Forwarded-For", "203.0.113.1, 192.0.2.9"), c.peer, 200},
			call{what + ", forged", "/", line("X-Forwarded-For", "203.0.113.2, 192.0.2.9"), c.peer, c.second},
		)
	}
}

// A gate outside of the middleware that stores the address finds none.
func TestChiClientIPOutside(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	r.Use(nethttp.Middleware(gate.RateLimit(atMost(t, 1), gate.ByIP(&gate.IPOptions{FromContext: middleware.GetClientIPAddr}), nil)))
	r.Use(middleware.ClientIPFromRemoteAddr)
	r.Get("/", ok)
	exchange(t, r, call{"no address yet", "/", nil, "", 500})
}

// A router inside of an http.ServeMux has the mux's route until it has found one.
func TestChiInAServeMux(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	r.Use(nethttp.Middleware(told(gate.ByRoute())))
	r.Get("/a", ok)
	mux := http.NewServeMux()
	mux.Handle("/", r)
	if got := keyOf(mux, "/a"); got != "route=/{...}" {
		t.Errorf("got %q, want the route of the mux, route=/{...}", got)
	}
}
