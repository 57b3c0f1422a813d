// Package ginlimit puts gates in front of Gin handlers.
//
//	r.GET("/detail", ginlimit.Middleware(g), handler)
//
// Middleware belongs inside what recovers panics, logs and authenticates, and
// inside CORS, whose preflight requests carry no credentials to key by and must
// not be refused: gin.Recovery, cors and the authentication first, then this.
//
// Gin has found the route before any middleware runs, so that a gate knows it
// wherever it is mounted, engine.Use too; for a request without a route Route is
// "". The wildcard of "/files/*path" is "{...}" in Route, and its value, without
// the slash that Gin begins it with, is that of the parameter "...".
//
// # Errors
//
// A handler that calls c.Error and writes nothing leaves the answer to
// middleware outside, and so does a request without a route: Leave is then
// called with nil.
//
// # The promise, and where it ends
//
// A gate decides and answers behind this adapter what it does behind the others:
// all of them pass the contract of core/gate/gatetest. Of a request whose handler
// has returned it knows nothing more, neither of a goroutine that the handler has
// left behind nor of a connection that it took over. A context that a gate made of
// a *gin.Context has its values until then: Gin uses the *gin.Context for another
// request. In a handler, give calls that take a context c.Request.Context(), which
// knows of the gates, and not c. A *gin.Context that middleware has put as a value
// into the request's context outlives the request's data, since the handler of a
// callback may run on: put c.Copy() there.
package ginlimit
