// Package ginlimit puts gates in front of Gin handlers.
//
//	r.GET("/detail", ginlimit.Middleware(g), handler)
//
// Mount Middleware inside the middleware that recovers panics, logs and authenticates:
// gin.Recovery, cors and the authentication first, then Middleware. A preflight request
// of CORS carries no credentials to key by, and must not be refused.
//
// # Routes
//
// Gin finds the route before any middleware runs. So a gate knows the route wherever it
// is mounted, also in engine.Use. Route is "" if no route matches the request. The
// wildcard of "/files/*path" is "{...}" in Route. Its value, without the slash with which
// Gin begins it, is the parameter "...".
//
// # Errors
//
// A handler that calls c.Error and writes nothing leaves the answer to middleware
// outside. So does a request without a route. Leave is then called with nil.
//
// # The promise, and where it ends
//
// A gate behind this adapter decides and answers as it does behind the other adapters:
// all of them pass the contract of core/gate/gatetest. Once the handler of a request has
// returned, a gate knows nothing more about that request. That includes a goroutine that
// the handler left behind, and a connection that it took over.
//
// A context that a gate made from a *gin.Context has its values only until then, because
// Gin uses the *gin.Context for another request. In a handler, pass c.Request.Context()
// to calls that take a context, and not c: the gates put their values into
// c.Request.Context().
//
// Middleware may put a *gin.Context as a value into the request's context. The handler of
// a callback may run on after the request, when Gin already uses the *gin.Context again.
// So put c.Copy() there.
package ginlimit
