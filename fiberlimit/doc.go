// Package fiberlimit puts gates in front of handlers of Fiber v2. For Fiber v3 use
// package fiber3limit.
//
//	app.Get("/detail", fiberlimit.Middleware(g), handler)
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
// all of them pass the contract of core/gate/gatetest. The sections below say where Fiber
// and fasthttp do not allow that.
//
// # Streams
//
// If a response body is set as a stream, such as by SendStream, SendFile or
// SetBodyStreamWriter, fasthttp writes it when the handlers have returned. A gate is left
// after that: when the stream was read to its end, or else when it is closed. Until then
// a slot, a lock, a claim and a reservation are held, and gate.RateLimitOptions.Settle is
// asked after it. The gate gets none of the body, which counts as partial:
// gate.Idempotent does not store it.
//
//   - If the length of a stream is known, the client may have all of it a moment before
//     the gate is left.
//   - If the client goes away, fasthttp closes the stream as soon as it cannot write. A
//     writer of SetBodyStreamWriter then runs on until its next Flush fails, and nothing
//     tells when that is. A reader of SendStream is not read any more.
//   - A client that reads slowly holds what the gate holds. fiber.Config.WriteTimeout
//     bounds that; it bounds the whole response.
//   - If a stream fails, or panics when it is read, the gate does not see the answer.
//     fasthttp does not recover a panic in a writer of SetBodyStreamWriter: it ends the
//     process.
//   - If a gate panics when it is left, that is logged to slog.Default, and the
//     connection ends. Middleware that recovers has returned by then.
//
// A stream outlives the *fiber.Ctx, which Fiber uses again. Count what a stream delivers
// in a value that the UserContext has a pointer to, with atomic operations. Settle finds
// it in the context of its request.
//
// # Connections that are taken over
//
// If a handler calls Hijack of the RequestCtx, as an upgrade to a websocket does, the
// gate is left when the function has returned that was given to Hijack. If the function
// leaves the connection to others (KeepHijackedConns of fasthttp's server), these are not
// counted. If the client is gone before the function runs, the function never runs. Then
// the gate is left when the garbage collector finds the request.
//
// # Clients that go away
//
// A request's context does not end when the client goes away. Behind gate.Exclusive a
// handler runs on until it returns, or until its lock is lost or reaches MaxHold.
//
// # TimeoutError
//
// If a handler gives up with TimeoutError of fasthttp, the gate sees no answer, because
// the handler may have left work that goes on. gate.Idempotent then treats the run as one
// in doubt. The same holds if middleware outside of the gate calls TimeoutError. If the
// handler has set a stream by then, the gate is left when the garbage collector finds the
// request.
//
// # Multipart forms
//
// Fiber parses a multipart form before any handler runs, and the original bytes are gone.
// Body then writes the form anew, always in the same way: fields sorted by name, then
// files with their headers. A gate cannot see these properties of such a form:
//
//   - the order of parts with different names,
//   - header fields of a part that is no file, except its name,
//   - how names and headers were spelled,
//   - what stands outside of named parts.
//
// If middleware has moved a file of the form away, as SaveFile does with a long one, Body
// fails with gate.ErrBodyConsumed. With DisablePreParseMultipartForm: true Body returns
// what was sent.
//
// # StreamRequestBody
//
// Under StreamRequestBody a chunked body that ends between two chunks passes for a whole
// one. A request that is refused ends its connection, because otherwise fasthttp would
// take the unread body for the next request.
//
// # Trailers
//
// fasthttp puts the trailer of a chunked body into the header of the request. A gate sees
// nothing of the trailer. In a chunked request a gate believes a field only if it is
// still as the client's header had it. [gate.ByHeader] and the other keys that read the
// header refuse with a 400 a field that a trailer or middleware may have made.
//
// Mount [DropTrailers] before all other middleware, and gates see what middleware has
// set. You also need it in one more case. Under StreamRequestBody, middleware outside a
// gate may first strip a field and then read the body itself. Without DropTrailers the
// trailer then brings the field back.
//
// Middleware that builds the header of a request anew hides what was sent. Unless
// DropTrailers has run before it, keys refuse the fields of such a request if its length
// is 0 or unknown, or if it has chunks.
//
// # Expect: 100-continue
//
// To a client that sends Expect: 100-continue, fasthttp answers "100 Continue" before any
// handler runs. So a gate can refuse a body that is too long only after it has arrived.
// To refuse it before, with a 413 of your ErrorHandler, tell fasthttp the limit and stop
// it from asking for the body:
//
//	app.Server().HeaderReceived = func(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
//		if h.ContentLength() > maxBody {
//			h.Del(fiber.HeaderExpect)
//			c.MaxRequestBodySize = maxBody
//		}
//		return c
//	}
//
// Under StreamRequestBody that does not help: there fasthttp waits for the first 8 KiB of
// a body, and its ContinueHandler can answer a 417.
//
// # UnescapePath
//
// Under UnescapePath Fiber turns each plus sign in a path into a space.
//
// # Contexts and strings that are used again
//
// After c.SetUserContext(c.Context()) the context that a gate makes has the values of the
// RequestCtx only until the handler has returned. Then Fiber uses the RequestCtx for
// another request, while a stream, or the handler of a callback, may still run.
//
// Middleware may put a *fiber.Ctx, or a string of Fiber's, as a value into the
// UserContext. The value can outlive the request's data. Put a copy there, such as
// utils.CopyString makes from a string.
//
// # Fiber's adaptor
//
// A gate of package nethttp that Fiber's adaptor mounts sees trailers as fields of the
// header, and strings whose memory Fiber uses again. In Fiber, use this package.
//
// If the adaptor serves an application of Fiber with net/http, there is no server of
// fasthttp. A gate is left before a connection is taken over.
package fiberlimit
