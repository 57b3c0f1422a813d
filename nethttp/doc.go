// Package nethttp puts gates in front of net/http handlers, and limits what an
// http.Client sends ([NewTransport]).
//
//	mux.Handle("GET /detail", nethttp.Middleware(g)(handler))
//
// Mount Middleware inside the middleware that recovers panics, logs and authenticates.
// Also mount it inside CORS: a preflight request carries no credentials to key by, and
// must not be refused.
//
// # Routes
//
// Around one route a gate knows the route and its parameters. Around the whole server it
// knows them if it is wrapped directly around the http.ServeMux: it asks the mux where
// the request will go. Further out Route is "".
//
// A gate also knows the route of another router if that writes its route into Pattern of the
// request and its parameters into PathValue, as chi does. For another router, a few lines
// outside of the gate do that: [Beside other libraries] has them for go-zero, package
// kratoslimit for Kratos. Pattern is as http.ServeMux writes it, and no other option is
// needed.
//
// gorilla/mux does not do that. A gate within it has no Route, so [gate.ByRoute] and
// [gate.ByParam] answer 500. If it is inside of a http.ServeMux, the gate has the Route of the
// ServeMux, so that [gate.ByRoute] is one key for all routes of the router. [Beside other
// libraries] has keys for these.
//
// # The promise, and where it ends
//
// A gate behind this adapter decides and answers as it does behind the other adapters:
// all of them pass the contract of core/gate/gatetest. Once the handler of a request has
// returned, a gate knows nothing more about that request. That includes a goroutine that
// the handler left behind, and a connection that it took over.
//
// [Beside other libraries]: https://github.com/neap-go/neap/blob/main/docs/neighbours.md
package nethttp
