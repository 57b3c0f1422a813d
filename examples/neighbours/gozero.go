package neighbours

import (
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/zeromicro/go-zero/core/search"
	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/pathvar"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// ZeroRoutes is middleware that tells net/http the route and the parameters that go-zero has
// found. Use it outside of the gates: without it, gate.ByRoute and gate.ByParam answer 500. It
// reads the routes of the server at the first request.
func ZeroRoutes(server *rest.Server) rest.Middleware {
	patterns := sync.OnceValue(func() map[string]*search.Tree { return zeroPatterns(server.Routes()) })
	return func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if tree, ok := patterns()[r.Method]; ok {
				if found, ok := tree.Search(path.Clean(r.URL.Path)); ok { // as go-zero itself
					r.Pattern = found.Item.(string)
				}
			}
			for name, value := range pathvar.Vars(r) {
				r.SetPathValue(name, value)
			}
			next(w, r)
		}
	}
}

// zeroPatterns finds the pattern of a request as go-zero finds its handler.
func zeroPatterns(routes []rest.Route) map[string]*search.Tree {
	trees := map[string]*search.Tree{}
	for _, route := range routes {
		if trees[route.Method] == nil {
			trees[route.Method] = search.NewTree()
		}
		cleaned := path.Clean(route.Path)
		_ = trees[route.Method].Add(cleaned, zeroPattern(cleaned)) // go-zero has panicked if it fails
	}
	return trees
}

// zeroPattern writes a path of go-zero as http.ServeMux does.
func zeroPattern(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if name, is := strings.CutPrefix(segment, ":"); is {
			segments[i] = "{" + name + "}"
		}
	}
	if path == "/" {
		return "/{$}"
	}
	return strings.Join(segments, "/")
}

// Zero limits each client on each route, and each order by its number.
func Zero(server *rest.Server, each, orders *limit.Limiter, show http.HandlerFunc) {
	server.Use(ZeroRoutes(server))
	perRoute := gate.RateLimit(each, gate.Join(gate.ByRoute(), gate.ByIP(nil)), nil)
	server.Use(rest.ToMiddleware(nethttp.Middleware(perRoute)))

	order := nethttp.Middleware(gate.RateLimit(orders, gate.ByParam("id"), nil))
	server.AddRoute(rest.Route{Method: http.MethodGet, Path: "/orders/:id", Handler: order(show).ServeHTTP})
	server.AddRoute(rest.Route{Method: http.MethodGet, Path: "/items/:item", Handler: show})
}
