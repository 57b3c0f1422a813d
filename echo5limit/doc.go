// Package echo5limit puts gates in front of handlers of Echo v5. For Echo v4 use package
// echolimit.
//
//	e.GET("/detail", handler, echo5limit.Middleware(g))
//
// This package is a module of its own, so that users of the other adapters do not get the
// versions that Echo v5 requires.
//
// Mount Middleware inside the middleware that recovers panics, logs and authenticates:
// e.Use recover, cors and the authentication first, then Middleware. A preflight request
// of CORS carries no credentials to key by, and must not be refused.
//
// # Routes
//
// A gate knows the route in e.Use, in groups and on the route. In e.Pre Echo has not
// looked for the route yet, so Route is "". Route is also "" for a request without a
// route. A group with middleware has a route of its own for unknown paths in it,
// "/group/{...}".
//
// # From Echo v4
//
// Import this package instead of echolimit. Middleware, Handler, Key and Context have the
// same names here; their functions take an *echo.Context. The keys in Redis stay the
// same, so instances on v4 and on v5 share their limits, locks and records while you
// move.
//
// Echo's own Start is different: on SIGINT and SIGTERM it returns nil, so
// log.Fatal(e.Start(addr)) ends with "<nil>" and exit status 1.
//
// # Errors
//
// This concerns a gate that reads the response. If the handler returns an error, the
// application's HTTPErrorHandler renders it immediately, as with Echo's own logger. The
// error is also returned, so that middleware outside sees it, but what that middleware
// then writes to the response is dropped.
//
// It is not dropped if middleware outside replaces the response's writer, as Gzip does
// for a body below its MinLength. So let your HTTPErrorHandler check Committed, as Echo
// asks.
//
// Behind any other gate the error is only returned.
//
// # The promise, and where it ends
//
// A gate behind this adapter decides and answers as it does behind the other adapters:
// all of them pass the contract of core/gate/gatetest. Once the handler of a request has
// returned, a gate knows nothing more about that request. That includes a goroutine that
// the handler left behind, and a connection that it took over.
package echo5limit
