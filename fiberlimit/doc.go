// Package fiberlimit puts gates in front of handlers of Fiber v2. Package fiber3limit is for Fiber v3.
//
//	app.Get("/detail", fiberlimit.Middleware(g), handler)
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
// all of them pass the contract of core/gate/gatetest. Where Fiber does not let it:
//
// A response body set as a stream is written after the handlers have returned;
// Leave is called before that and sees it as partial. A request's context does
// not end with the client: behind gate.Exclusive a handler runs on until it
// returns, or its lock is lost or reaches MaxHold.
//
// Of a handler that gives up by TimeoutError of fasthttp a gate is told no answer, since
// it may have left work that goes on: gate.Idempotent takes the run for one in doubt.
//
// Fiber parses a multipart form before any handler runs, and its bytes are gone.
// Body then returns the form written anew, always alike: fields sorted by name,
// then files with their headers. What a gate cannot tell of such a form is the
// order of parts of different names, what a part that is no file has in its
// header beside its name, how names and headers were spelled, and what stands
// outside of named parts. When middleware has moved a file of the form away, as
// SaveFile does with a long one, Body fails with gate.ErrBodyConsumed. With
// DisablePreParseMultipartForm: true Body returns what was sent.
//
// Under StreamRequestBody a chunked body that ends between two chunks passes for
// a whole one, and a request that is refused ends its connection: fasthttp would
// take the body, unread, for the next request.
//
// fasthttp puts the trailer of a chunked body into the header of the request. A
// gate sees none of it: of a chunked request it believes a field that still is as
// the client's header had it, and [gate.ByHeader] and its like refuse with a 400
// one that a trailer or middleware may have made. Mount [DropTrailers] before all
// other middleware, and gates see what middleware has set there. You need it in
// one more case: under StreamRequestBody, when middleware outside a gate first
// strips a field and then reads the body itself, the trailer brings the field back.
// Middleware that makes the header of a request anew hides what was sent: unless
// DropTrailers has run before it, keys refuse the fields of a request whose length
// is 0, unknown or that of chunks.
//
// To a client that sends Expect: 100-continue fasthttp says "100 Continue" before
// any handler runs, so that a gate refuses a body that is too long when it has
// come. To have it refused before, with a 413 of your ErrorHandler's, tell fasthttp
// the limit and keep it from asking for the body:
//
//	app.Server().HeaderReceived = func(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
//		if h.ContentLength() > maxBody {
//			h.Del(fiber.HeaderExpect)
//			c.MaxRequestBodySize = maxBody
//		}
//		return c
//	}
//
// Under StreamRequestBody that does not help: there fasthttp waits for the first
// 8 KiB of a body, and its ContinueHandler can answer a 417.
//
// Under UnescapePath Fiber makes a space of each plus sign in a path.
//
// After c.SetUserContext(c.Context()) the context that a gate makes has the values
// of the RequestCtx only until the gate is left: then Fiber uses the RequestCtx for
// another request, while the handler of a callback may still run. A *fiber.Ctx, or a
// string of Fiber's, that middleware puts as a value into the UserContext outlives the
// request's data: put a copy there, such as utils.CopyString makes of a string.
//
// A gate of package nethttp that Fiber's adaptor mounts sees trailers as fields of the
// header, and strings whose memory Fiber uses again: in Fiber, use this package.
package fiberlimit
