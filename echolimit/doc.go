// Package echolimit puts gates in front of handlers of Echo v4. Package echo5limit is for Echo v5.
//
//	e.GET("/detail", handler, echolimit.Middleware(g))
//
// Middleware belongs inside what recovers panics, logs and authenticates, and
// inside CORS, whose preflight requests carry no credentials to key by and must
// not be refused: e.Use recover, cors and the authentication first, then this.
//
// A gate knows the route in e.Use, in groups and on the route; in e.Pre Echo has
// not looked for it yet, and Route is "", as it is for a request without a
// route. A group with middleware has a route of its own for paths unknown in it,
// "/group/{...}".
//
// # Errors
//
// Behind a gate that wants to see the response, an error that a handler returns
// is rendered at once by the application's HTTPErrorHandler, as with Echo's own
// logger. It is returned as well, for middleware outside to see, but what is
// then written to the response is dropped. Middleware outside that takes its writer
// away, as Gzip does with a body below its MinLength, undoes that: have the
// HTTPErrorHandler look at Committed, as Echo asks. Behind any other gate the error is
// returned, nothing more.
//
// # The promise, and where it ends
//
// A gate decides and answers behind this adapter what it does behind the others:
// all of them pass the contract of core/gate/gatetest. Of a request whose handler
// has returned it knows nothing more, neither of a goroutine that the handler has
// left behind nor of a connection that it took over.
package echolimit
