// Package fiber3limit puts gates in front of handlers of Fiber v3. It is a module of its own, so that users of the
// other adapters do not get the versions that Fiber v3 requires; package fiberlimit is for Fiber v2.
//
//	app.Get("/detail", fiber3limit.Middleware(g), handler)
//
// Middleware belongs inside what recovers panics, logs and authenticates, and
// inside CORS, whose preflight requests carry no credentials to key by and must
// not be refused: app.Use recover, cors and the authentication first, then this.
//
// A gate knows the route and its parameters where Middleware is one of the
// route's own handlers. In app.Use, app.Group and group.Use Fiber has not looked
// for the route yet, and Route is "". Strings that a gate is given are copies:
// Fiber uses the memory of its own again.
//
// # From Fiber v2
//
// In the place of package fiberlimit import this one; Middleware, Handler, Key,
// Context and DropTrailers have the same names here, and their functions take a
// fiber.Ctx. The context in which a handler finds its decision, lock or claim is
// c.Context(), which in v2 was c.UserContext(). The keys in Redis stay the same, so
// instances on v2 and on v3 share their limits, locks and records while you move.
//
// # Errors
//
// Behind a gate that wants to see the response, an error that a handler returns
// is rendered at once by the application's ErrorHandler and goes no further, as
// with Fiber's own logger: Fiber would render it a second time. Behind any other
// gate it is returned.
//
// # The promise, and where it ends
//
// A gate decides and answers behind this adapter what it does behind the others:
// all of them pass the contract of core/gate/gatetest. Where Fiber and fasthttp do
// not let it, both adapters are alike: package fiberlimit says what becomes of
// streams, of TimeoutError, of forms that Fiber has parsed, of trailers, of
// Expect: 100-continue and of UnescapePath. What is different here:
//
// Behind the timeout middleware of Fiber v3 a handler runs on when the client has
// got its 408. A gate outside of the timeout is left at that moment, and is not told
// how the handler ends: gate.Idempotent takes the run for one in doubt, and
// gate.Exclusive releases its lock. Put the gate inside, as in
// timeout.New(fiber3limit.Middleware(g)), and it is left when the handler returns. If
// the handler was too late, the gate is not told how it ended.
//
// A handler that closes the connection by c.Drop has answered with an empty 200 as far as
// a gate can tell. Call c.Status(500).Drop() if the work may not be done.
//
// Of a request that the server could not read, such as one whose body is longer than
// BodyLimit, Fiber v3 runs the middleware of app.Use, no route, and then its ErrorHandler. A gate of
// app.Use decides about it too, finds its body broken and is not told of the answer.
//
// The server refuses a request whose trailer declares or has a field that no trailer
// may have, such as Content-Type, Cookie and X-Forwarded-For, with a 400 before any
// handler runs. A body that is streamed fails when it is read.
//
// Where middleware takes a field out of the header, fasthttp may change the order in
// which the lines of another field stand. A gate sees the lines that were sent in
// their order, and behind them those that middleware has added.
//
// In Fiber v3 a fiber.Ctx is a context as well, but it is not the one that a gate makes: it
// does not end with a lock, and FromContext finds nothing in it. Hand on c.Context().
//
// After c.SetContext(c) or c.SetContext(c.RequestCtx()) the context that a gate makes
// has their values only until the gate is left: then Fiber uses both for another
// request. A fiber.Ctx, or a string of Fiber's, that middleware puts as a value into
// the context outlives the request's data: put a copy there.
package fiber3limit
