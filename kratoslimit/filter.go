package kratoslimit

import (
	"net/http"
	"strings"

	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/gorilla/mux"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/nethttp"
)

// Filter returns a filter for Kratos' HTTP server, for its Route, or around a handler. It is
// nethttp.Middleware, and the gate knows the route and its parameters. Filter panics if g is
// nil.
//
// In khttp.Filter, which runs before the router, the gate knows neither: there gate.ByRoute
// and gate.ByParam answer 500.
func Filter(g gate.Gate) khttp.FilterFunc {
	adapter.RequireGate("kratoslimit.Filter", g)
	limited := nethttp.Middleware(g)
	return func(next http.Handler) http.Handler {
		gated := limited(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tell(r)
			gated.ServeHTTP(w, r)
		})
	}
}

// tell writes what the router of Kratos has found to where net/http has it.
func tell(r *http.Request) {
	route := mux.CurrentRoute(r)
	if route == nil {
		return
	}
	template, err := route.GetPathTemplate()
	if err != nil { // it matches by something else than the path
		return
	}
	r.Pattern = pattern(template)
	for name, value := range mux.Vars(r) {
		r.SetPathValue(name, value)
	}
}

// pattern writes a path template of the router as net/http does, with "{$}" behind a last slash.
func pattern(template string) string {
	if strings.HasSuffix(template, "/") {
		template += "{$}"
	}
	return withoutExpressions(template)
}

// withoutExpressions writes {id:[0-9]+} as {id}.
func withoutExpressions(template string) string {
	if !strings.Contains(template, ":") {
		return template
	}
	var out strings.Builder
	depth, expression := 0, false
	for _, c := range template {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		case ':':
			expression = depth > 0
		}
		if depth == 0 {
			expression = false
		}
		if !expression {
			out.WriteRune(c)
		}
	}
	return out.String()
}
