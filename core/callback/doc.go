// Package callback receives what payment providers and others send until it is
// acknowledged: each event is handled once, and acknowledged when it was done,
// and only then.
//
//	endpoint, err := callback.New(callback.Stripe(), guard, verify, book, nil)
//	if err != nil {
//		return err
//	}
//	mux.Handle("POST /callbacks/stripe", nethttp.Handler(endpoint))
//
// # The promise, and where it ends
//
// The provider is told that an event is done only after the handler has returned
// nil and Redis has noted it. Otherwise it is told to come again, and then the
// event is handled unless it was done by then. While Redis keeps its data no event
// that was done is handled again. A process that dies after the handler has booked
// and before Redis has noted it leaves an event of which nobody knows: by the
// guard's InDoubt it is handled again, and so the handler's own transaction should
// carry Event.Key under a unique constraint.
package callback
