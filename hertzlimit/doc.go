// Package hertzlimit puts gates in front of handlers of Hertz (CloudWeGo). It is a module
// of its own.
//
//	h := server.Default(server.WithUseRawPath(true))
//	h.GET("/detail", hertzlimit.Middleware(g), handler)
//
// Mount Middleware inside the middleware that recovers panics, logs and authenticates:
// server.Default recovers, so Use cors and the authentication next, then Middleware. A
// preflight request of CORS carries no credentials to key by, and must not be refused.
//
// # Routes
//
// A gate knows the route and its parameters, also in Use and in a group: Hertz looks for
// the route before any handler runs. For a request without a route, Route is "".
//
// By default Hertz decodes a path before it looks for the route. Then %2F is a slash like
// any other, and begins another segment. With server.WithUseRawPath(true) it belongs to
// the parameter, as behind the other adapters. Hertz then turns each plus sign in a
// parameter into a space, unless you add server.WithUnescapePathValues(false).
//
// # The promise, and where it ends
//
// A gate behind this adapter decides and answers as it does behind the other adapters:
// all of them pass the contract of core/gate/gatetest. The sections below say where Hertz
// does not allow that.
//
// # Answers that Hertz or middleware outside makes
//
// For a request without a route Hertz writes the text of its 404, 405 or 400 when all
// middleware has returned. If a handler reports an error with c.Error and writes nothing,
// middleware outside answers. A gate sees neither. So gate.Idempotent treats the run as
// one in doubt, and gate.RateLimitOptions.Count is not asked: the request counts. A
// handler that reports an error and sets a status, as c.AbortWithError does, has
// answered.
//
// # Streams
//
// If a handler sets the body as a stream (SetBodyStream), or replaces the response's
// writer (HijackWriter, package sse), the answer goes on when the handlers have returned.
// A gate is left after that: when the stream was read to its end, or else when it is
// closed; and when Hertz finalizes the writer. Until then a slot, a lock, a claim and a
// reservation are held, and gate.RateLimitOptions.Settle is asked after it. The gate gets
// none of the body, which counts as partial: gate.Idempotent does not store it.
//
//   - The client may have all of an answer a moment before the gate is left if a handler
//     calls Finalize of its writer itself, as Close of package sse does. The gate is left
//     when the handlers have returned.
//   - If the client goes away, Hertz closes the stream as soon as it cannot write. A
//     reader that waits for data of yours is not told.
//   - If a stream fails or panics, the gate does not see the answer. If its length is not
//     known and it fails, Hertz ends the body as if it were whole.
//   - If a gate panics when it is left, that is logged to slog.Default. Middleware that
//     recovers has returned by then.
//
// A stream outlives the *app.RequestContext, which Hertz uses again. Count what a stream
// delivers in a value that the context has a pointer to, with atomic operations. Settle
// finds it in the context of its request.
//
// # Connections that are taken over
//
// If a handler calls c.Hijack, Hertz sends its response and then runs the function that was
// given to Hijack. The gate is left when the function has returned. It gets the status and
// the header of the response, and none of its body. If the client is gone before the
// function runs, the function never runs. Then the gate is left when the garbage collector
// finds the request.
//
// # Clients that go away
//
// A request's context does not end when the client goes away, unless you set
// server.WithSenseClientDisconnection(true). Without it, behind gate.Exclusive a handler
// runs on until it returns, or until its lock is lost or reaches MaxHold. On the standard
// transport the option has no effect on a request with a streamed body.
//
// # Multipart forms
//
// Hertz parses a multipart form before any handler runs, and the original bytes are gone.
// Body then writes the form anew, always in the same way: fields sorted by name, then
// files with their headers. A gate cannot see the order of parts with different names,
// header fields of a part that is no file, how names were spelled, and what stands outside
// of named parts. If middleware has removed the form (RemoveMultipartFormFiles), Body fails
// with gate.ErrBodyConsumed. With server.WithDisablePreParseMultipartForm(true) Body returns
// what was sent.
//
// # Bodies
//
// Hertz reads a body before any handler runs, and refuses a broken one itself. It answers
// "100 Continue" before that, so a gate can refuse a body that is too long only after it
// has arrived. server.WithMaxRequestBodySize sets a limit for all routes.
//
// With server.WithStreamBody(true) handlers run when the first 8 KiB have arrived, or
// none of a chunked body. If a gate has read a part of a chunked body and the handler does
// not read the rest, the connection ends with the response: Hertz would look for the next
// request in the middle of a chunk. A gate cannot tell that middleware outside has read a
// chunked body if it has stopped exactly between two chunks: the gate and the handler see
// what is left.
//
// # Trailers
//
// A gate sees nothing of the trailer of a chunked body: Hertz keeps it apart from the
// header. Hertz refuses a request whose trailer has a field such as Content-Type.
//
// # Unit tests
//
// A request of package ut has no connection. gate.ByIP takes 0.0.0.0 for its address.
package hertzlimit
