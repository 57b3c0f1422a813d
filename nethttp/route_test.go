package nethttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/nethttp"
)

type gateFunc func(gate.Request) gate.Pass

func (f gateFunc) Enter(q gate.Request) gate.Pass { return f(q) }

// TestRouteOfAServeMux mounts a gate on every pattern and one around the mux. Both are
// told the same.
func TestRouteOfAServeMux(t *testing.T) {
	t.Parallel()
	var told [][2]string
	asking := func(param string) gate.Gate {
		return gateFunc(func(q gate.Request) gate.Pass {
			told = append(told, [2]string{q.Route(), q.Param(param)})
			return gate.Pass{}
		})
	}
	for _, c := range []struct {
		pattern, host, target, param string
		route, value                 string
	}{
		{"/detail", "", "/detail", "id", "/detail", ""},
		{"GET /users/{id}", "", "/users/a%2Fb", "id", "/users/{id}", "a/b"},
		{"GET\t/users/{id}", "", "/users/7", "id", "/users/{id}", "7"},
		{"GET example.com/users/{id}", "example.com", "/users/7", "id", "/users/{id}", "7"},
		{"/users/{id}/{$}", "", "/users/7/", "id", "/users/{id}/", "7"},
		{"/{$}", "", "/", "id", "/", ""},
		{"/", "", "/a/b%2Fc", "...", "/{...}", "a/b/c"},
		{"/static/", "", "/static/a/b%20c", "...", "/static/{...}", "a/b c"},
		{"/files/{rest...}", "", "/files/a/b%2Fc", "...", "/files/{...}", "a/b/c"},
		{"/files/{rest...}", "", "/files/a/b%2Fc", "rest", "/files/{...}", "a/b/c"},
		{"/{rest...}", "", "/a/b", "rest", "/{...}", "a/b"},
		{"/users/{id}", "", "/users/7", "none", "/users/{id}", ""},
	} {
		told = nil
		mux := http.NewServeMux()
		mux.Handle(c.pattern, nethttp.Middleware(asking(c.param))(nothing))
		r := httptest.NewRequest("GET", c.target, nil)
		if c.host != "" {
			r.Host = c.host
		}
		nethttp.Middleware(asking(c.param))(mux).ServeHTTP(httptest.NewRecorder(), r)
		want := [2]string{c.route, c.value}
		if len(told) != 2 || told[0] != want || told[1] != want {
			t.Errorf("%s on %q: outside and inside the gate was told %q, want %q", c.target, c.pattern, told, want)
		}
	}
}

// TestRouteOfARedirect: a ServeMux redirects a path that is not clean. The gate around it
// is told the route to which the redirect leads.
func TestRouteOfARedirect(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/users/{id}", nothing)
	mux.Handle("/static/", nothing)
	for target, want := range map[string]string{
		"/x/..//users/7": "/users/{id} 7", "/static": "/static/{...} ", "/nowhere": " ", "/users/7/": " ",
	} {
		var told string
		h := nethttp.Middleware(gateFunc(func(q gate.Request) gate.Pass {
			told = q.Route() + " " + q.Param("id")
			return gate.Pass{}
		}))(mux)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", target, nil))
		if told != want {
			t.Errorf("%s: the gate was told %q, want %q", target, told, want)
		}
	}
}

// TestWildcardBehindStripPrefix: the gate finds what the mux matched, whether StripPrefix
// is outside or inside the mux.
func TestWildcardBehindStripPrefix(t *testing.T) {
	t.Parallel()
	asking := func(told *string) http.Handler {
		return nethttp.Middleware(gateFunc(func(q gate.Request) gate.Pass {
			key, err := gate.ByParam("...")(q)
			*told = key
			if err != nil {
				*told = err.Error()
			}
			return gate.Pass{}
		}))(nothing)
	}
	for target, want := range map[string]string{
		"/files/a%20b/c": "param:...=a b/c",
		"/files/a%252F":  "param:...=a/",
		"/files/":        "gate: refused: The path lacks its parameter ...",
	} {
		var inside, outside string
		mux := http.NewServeMux()
		mux.Handle("/files/", http.StripPrefix("/files", asking(&inside)))
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", target, nil))
		stripped := http.NewServeMux()
		stripped.Handle("/files/", asking(&outside))
		http.StripPrefix("/api", stripped).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/api"+target, nil))
		if inside != want || outside != want {
			t.Errorf("%s: got %q behind, %q before StripPrefix, want %q", target, inside, outside, want)
		}
	}
}

// TestStrippedPathThatMatchesToo: what StripPrefix leaves may match the route as well,
// with other values. The gate takes the values of the path that the mux matched.
func TestStrippedPathThatMatchesToo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ around, pattern, within, target, tenant, rest string }{
		{"", "/t/{tenant}/", "/t", "/t/t/x/y", "t", "x/y"},
		{"", "/t/{tenant}/", "/t", "/t/x/y", "x", "y"},
		{"", "/t/{tenant}/", "/t/x", "/t/x/t/y/z", "x", "t/y/z"},
		{"", "/t/{tenant}/", "/t", "/t/a%2Fb/y%2Fz", "a/b", "y/z"},
		{"/t", "/t/{tenant}/", "", "/t/t/x/y", "x", "y"},
		{"/a", "/{tenant}/", "", "/a/x/y", "x", "y"},
	} {
		var gated, tenant string
		h := nethttp.Middleware(gateFunc(func(q gate.Request) gate.Pass {
			byTenant, _ := gate.ByParam("tenant")(q)
			byRest, _ := gate.ByParam("...")(q)
			gated = byTenant + " " + byRest
			return gate.Pass{}
		}))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { tenant = r.PathValue("tenant") }))
		mux := http.NewServeMux()
		mux.Handle(c.pattern, http.StripPrefix(c.within, h))
		http.StripPrefix(c.around, mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", c.target, nil))
		if want := "param:tenant=" + c.tenant + " param:...=" + c.rest; gated != want || tenant != c.tenant {
			t.Errorf("%s by %s on %s: the gate keys by %q, want %q; the handler finds %q", c.target, c.around, c.pattern, gated, want, tenant)
		}
	}
}

// TestRouteOfAnotherRouter that tells net/http its route and parameters, also inside of a mux.
func TestRouteOfAnotherRouter(t *testing.T) {
	t.Parallel()
	for _, around := range []string{"", "/", "/{id}/", "/{rest...}"} {
		var told string
		gated := nethttp.Middleware(gateFunc(func(q gate.Request) gate.Pass {
			route, _ := gate.ByRoute()(q)
			param, _ := gate.ByParam("id")(q)
			told = route + " " + param
			return gate.Pass{}
		}))(nothing)
		var router http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Pattern = "/users/{id}/"
			r.SetPathValue("id", "7")
			gated.ServeHTTP(w, r)
		})
		if around != "" {
			mux := http.NewServeMux()
			mux.Handle(around, router)
			router = mux
		}
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/USERS/7/", nil))
		if want := "route=/users/{id}/{...} param:id=7"; told != want {
			t.Errorf("in a mux at %q the gate was told %q, want %q", around, told, want)
		}
	}
}

// TestRouteUnknown: outside of other middleware the route is unknown.
func TestRouteUnknown(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/users/{id}", nothing)
	wrapped := http.HandlerFunc(mux.ServeHTTP)
	told := "not asked"
	h := nethttp.Middleware(gateFunc(func(q gate.Request) gate.Pass {
		told = q.Route() + q.Param("id") + q.Param("...")
		return gate.Pass{}
	}))(wrapped)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/users/7", nil))
	if told != "" {
		t.Errorf("the gate was told %q, want nothing", told)
	}
}
