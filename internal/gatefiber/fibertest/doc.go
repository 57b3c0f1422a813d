// Package fibertest holds the adapters of Fiber, whatever its version, to what
// fasthttp does to a request and an adapter must undo: it takes bodies away, mixes
// trailers into headers, parses forms, and uses its memory again. An adapter's test
// describes how to serve an application, as for [gatetest], and hands that to [Run]:
//
//	func TestFasthttp(t *testing.T) {
//		fibertest.Run(t, fibertest.Driver{Serve: serve, RequestCtx: requestCtx, Key: key, …})
//	}
//
// It compiles no version of Fiber, and of fasthttp only what each of its versions has
// that an adapter here requires.
package fibertest
