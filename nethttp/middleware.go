package nethttp

import (
	"net/http"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Middleware returns middleware that asks g about every request.
//
// It allocates nothing of its own if the gate lets a request pass without header fields,
// and allocates once for each field. The gate's own decision allocates, and so does
// finding the route if the handler is a *http.ServeMux. The ResponseWriter is wrapped
// only for a gate that reads the response.
//
// Middleware panics if g is nil. The middleware that it returns panics if the handler is
// nil.
func Middleware(g gate.Gate) func(http.Handler) http.Handler {
	adapter.RequireGate("nethttp.Middleware", g)
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("nethttp.Middleware: the handler is nil")
		}
		mux, _ := next.(*http.ServeMux)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pass := g.Enter(newRequest(r, mux))
			gatehttp.Apply(w.Header(), pass.Header)
			switch {
			case pass.Reply != nil:
				gatehttp.WriteReply(w, r.Method, pass.Reply)
			case pass.Leave == nil:
				run(next, w, r, pass)
			default:
				adapter.Leave(pass.Leave, func() *gate.Reply {
					rec := gatehttp.NewRecorder(w.Header(), r.Method, pass.Capture)
					run(next, rec.Wrap(w), r, pass)
					return rec.Reply()
				})
			}
		})
	}
}

// Handler returns a handler that serves the endpoint e. It panics if e is nil.
func Handler(e gate.Endpoint) http.Handler {
	adapter.RequireEndpoint("nethttp.Handler", e)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := e.Serve(newRequest(r, nil))
		gatehttp.WriteReply(w, r.Method, &reply)
	})
}

func run(next http.Handler, w http.ResponseWriter, r *http.Request, pass gate.Pass) {
	if pass.Context == nil {
		next.ServeHTTP(w, r)
		return
	}
	inner := r.WithContext(pass.Context)
	defer gatehttp.HandBack(r, inner)
	next.ServeHTTP(w, inner)
}
