package kratoslimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	khttp "github.com/go-kratos/kratos/v2/transport/http"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/kratoslimit"
)

// keyOf is the subject that a key makes of a request, or its error.
func keyOf(key gate.Key, got *string) gate.Gate {
	return gatefake.Func(func(q gate.Request) gate.Pass {
		subject, err := key(q)
		if *got = subject; err != nil {
			*got = err.Error()
		}
		return gate.Pass{}
	})
}

func done(ctx khttp.Context) error { return ctx.String(http.StatusOK, ctx.Vars().Get("id")) }

// TestAFilterKnowsTheRoute and its parameters, whatever the template has.
func TestAFilterKnowsTheRoute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ prefix, path, target, route, param string }{
		{"/v1", "/orders/{id}", "/v1/orders/7", "/v1/orders/{id}", "7"},
		{"/v1", "/orders/{id:[0-9]+}", "/v1/orders/7", "/v1/orders/{id}", "7"},
		{"/v1", "/orders/{id:[0-9]{1,3}}", "/v1/orders/7", "/v1/orders/{id}", "7"},
		{"/", "/{shop:[a-z:]+}/{id:(?:a|b){2}}:cancel", "/x:y/ab:cancel", "/{shop}/{id}:cancel", "ab"},
		{"/v1", "/{id:orders/.*}", "/v1/orders/7/8", "/v1/{id}", "orders/7/8"},
		{"/v1", "/orders", "/v1/orders", "/v1/orders", ""},
		{"/", "/", "/", "/", ""},
	} {
		for _, where := range []string{"Route", "Group", "GET"} {
			var route, param string
			filter := khttp.FilterChain(kratoslimit.Filter(keyOf(gate.ByRoute(), &route)), kratoslimit.Filter(keyOf(gate.ByParam("id"), &param)))
			server := khttp.NewServer()
			switch where {
			case "Route":
				server.Route(c.prefix, filter).GET(c.path, done)
			case "Group":
				server.Route("/").Group(c.prefix, filter).GET(c.path, done)
			case "GET":
				server.Route(c.prefix).GET(c.path, done, filter)
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.target, nil))
			want := "param:id=" + c.param
			if c.param == "" {
				want = "gate: wrong wiring: "
			}
			if w.Code != 200 || w.Body.String() != c.param || route != "route="+c.route || !strings.HasPrefix(param, want) {
				t.Errorf("%s%s in %s: got a %d, the keys %q and %q, and the handler %q, want route=%s and %s", c.prefix, c.path, where, w.Code, route, param, w.Body, c.route, want)
			}
		}
	}
}

// TestSpellingsOfAPathHaveOneKey, if they reach the handler.
func TestSpellingsOfAPathHaveOneKey(t *testing.T) {
	t.Parallel()
	var key string
	server := khttp.NewServer()
	server.Route("/v1", kratoslimit.Filter(keyOf(gate.Join(gate.ByRoute(), gate.ByParam("id")), &key))).GET("/orders/{id}", done)
	for target, want := range map[string]int{
		"/v1/orders/7": 200, "/v1/orders/7?id=8": 200, "/v1/orders/%37": 200, "/v1/%6Frders/7": 200, "http://example.com/v1/orders/7": 200,
		"//v1/orders/7": 301, "/v1//orders/7": 301, "/v1/./orders/7": 301, "/v1/x/../orders/7": 301, "/v1/orders/8/%2e%2e/7": 301, "/v1/orders/7/": 301,
		"/v1/orders/7%2F8": 404, "/V1/orders/7": 404, "/v1/orders": 404,
	} {
		key = ""
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		if w.Code != want || want == 200 && (key != "join=21:route=/v1/orders/{id}10:param:id=7" || w.Body.String() != "7") || want != 200 && key != "" {
			t.Errorf("%s: got a %d and the key %q, and the handler %q, want a %d, and the key of order 7 alone if the handler runs", target, w.Code, key, w.Body, want)
		}
	}
}

// TestAFilterBeforeTheRouter knows no route, and says what to do.
func TestAFilterBeforeTheRouter(t *testing.T) {
	t.Parallel()
	var told []string
	tell := func(_ gate.Request, err error) { told = append(told, err.Error()) }
	for _, key := range []gate.Key{gate.ByRoute(), gate.ByParam("id")} {
		told = nil
		server := khttp.NewServer(khttp.Filter(kratoslimit.Filter(gate.RateLimit(hourly(t, 1), key, &gate.RateLimitOptions{OnError: tell}))))
		server.Route("/").GET("/orders/{id}", done)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/orders/7", nil))
		if w.Code != 500 || len(told) != 1 || !strings.Contains(told[0], "mount the gate on the route itself") || strings.Contains(w.Body.String(), "mount") {
			t.Errorf("got a %d, %s, and the hook %q, want a plain 500, and the remedy for the hook", w.Code, w.Body, told)
		}
	}
}

// TestAFilterAroundAHandler that is no route of Route.
func TestAFilterAroundAHandler(t *testing.T) {
	t.Parallel()
	var key string
	server := khttp.NewServer()
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	gated := kratoslimit.Filter(keyOf(gate.ByRoute(), &key))(handler)
	server.Handle("/orders/{id}", gated)
	server.HandlePrefix("/files/", gated)
	server.HandleHeader("X-Shop", "tea", gated.ServeHTTP)
	for _, c := range []struct{ target, want string }{
		{"/orders/7", "route=/orders/{id}"}, {"/files/a/b", "route=/files/"}, {"/any", "gate: wrong wiring: "}, // a route without a path
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, c.target, nil)
		r.Header.Set("X-Shop", "tea")
		if server.ServeHTTP(w, r); w.Code != http.StatusNoContent || !strings.HasPrefix(key, c.want) {
			t.Errorf("%s: got a %d and the key %q, want %q", c.target, w.Code, key, c.want)
		}
	}
}
