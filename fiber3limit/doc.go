// Package fiber3limit puts gates in front of handlers of Fiber v3. For Fiber v2 use
// package fiberlimit.
//
//	app.Get("/detail", fiber3limit.Middleware(g), handler)
//
// This package is a module of its own, so that users of the other adapters do not get the
// versions that Fiber v3 requires.
//
// Mount Middleware inside the middleware that recovers panics, logs and authenticates:
// app.Use recover, cors and the authentication first, then Middleware. A preflight
// request of CORS carries no credentials to key by, and must not be refused.
//
// # Routes
//
// A gate knows the route and its parameters if Middleware is one of the route's own
// handlers. In app.Use, app.Group and group.Use Fiber has not looked for the route yet,
// so Route is "".
//
// A gate gets copies of all strings, because Fiber uses the memory of its own strings
// again.
//
// # From Fiber v2
//
// Import this package instead of fiberlimit. Middleware, Handler, Key, Context and
// DropTrailers have the same names here; their functions take a fiber.Ctx. A handler
// finds its decision, lock or claim in c.Context(), which was c.UserContext() in v2. The
// keys in Redis stay the same, so instances on v2 and on v3 share their limits, locks and
// records while you move.
//
// # Errors
//
// Behind a gate that reads the response, the application's ErrorHandler renders an error
// of the handler immediately, as with Fiber's own logger. The error goes no further,
// because Fiber would render it a second time. Behind any other gate the error is
// returned.
//
// # The promise, and where it ends
//
// A gate behind this adapter decides and answers as it does behind the other adapters:
// all of them pass the contract of core/gate/gatetest. Where Fiber and fasthttp do not
// allow that, both adapters of Fiber behave alike. Package fiberlimit describes streams,
// connections that are taken over, TimeoutError, forms that Fiber has parsed, trailers,
// Expect: 100-continue and UnescapePath. SendStreamWriter of Fiber v3 is
// SetBodyStreamWriter there. The sections below describe what is different in Fiber v3.
//
// # Timeout middleware
//
// Behind the timeout middleware of Fiber v3 a handler runs on after the client has got
// its 408. A gate outside of the timeout is left at that moment, and is not told how the
// handler ends: gate.Idempotent treats the run as one in doubt, and gate.Exclusive
// releases its lock.
//
// If you put the gate inside, as in timeout.New(fiber3limit.Middleware(g)), it is left
// when the handler returns. If the handler was too late, the gate is not told how it
// ended.
//
// # Drop and End
//
// If a handler closes the connection with c.Drop, a gate sees an empty 200. Call
// c.Status(500).Drop() if the work may not be done. If a handler sends a stream with c.End,
// a gate sees a part of the answer: gate.Idempotent cannot replay it.
//
// # Requests that cannot be read
//
// If the server could not read a request, for example because its body is longer than
// BodyLimit, Fiber v3 runs the middleware of app.Use, no route, and then its
// ErrorHandler. A gate of app.Use decides about such a request too. It finds the body
// broken, and is not told of the answer.
//
// If a trailer declares or has a field that no trailer may have, such as Content-Type,
// Cookie and X-Forwarded-For, the server refuses the request with a 400 before any
// handler runs. If the body is streamed, it fails when it is read.
//
// # The order of header lines
//
// If middleware removes a field from the header, fasthttp may change the order of another
// field's lines. A gate sees the lines that were sent in their order, and after them
// those that middleware has added.
//
// # Contexts and strings that are used again
//
// In Fiber v3 a fiber.Ctx is a context as well, but not the one that a gate makes: it
// does not end with a lock, and FromContext finds nothing in it. Pass on c.Context().
//
// After c.SetContext(c) or c.SetContext(c.RequestCtx()) the context that a gate makes has
// their values only until the handler has returned. Then Fiber uses both for another
// request, while a stream may still run.
//
// Middleware may put a fiber.Ctx, or a string of Fiber's, as a value into the context.
// The value can outlive the request's data. Put a copy there.
package fiber3limit
