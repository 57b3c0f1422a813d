// Package nethttp puts gates in front of net/http handlers.
//
//	mux.Handle("GET /detail", nethttp.Middleware(g)(handler))
//
// Middleware belongs inside what recovers panics, logs and authenticates, and
// inside CORS, whose preflight requests carry no credentials to key by and must
// not be refused.
//
// Around one route a gate knows the route and its parameters. Around the whole
// server it does when it is wrapped directly around the http.ServeMux, which is
// asked where the request will go; further out Route is "".
//
// Another router that writes its route into the Pattern of the request, as chi does,
// is known by that. gorilla/mux does not: a gate within it has no Route, or inside of a
// http.ServeMux that of the ServeMux, so that [gate.ByRoute] is one key for all routes of the
// router. docs/neighbours.md has a key that knows them.
//
// # The promise, and where it ends
//
// A gate decides and answers behind this adapter what it does behind the others:
// all of them pass the contract of core/gate/gatetest. Of a request whose handler
// has returned it knows nothing more, neither of a goroutine that the handler has
// left behind nor of a connection that it took over.
package nethttp
