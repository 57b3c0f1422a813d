// Package callback receives the events of payment providers and others, which send each
// event until it is acknowledged. It handles each event once, and acknowledges it only
// after that is done.
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
// event is handled unless it was done by then. While Redis keeps its data, no event
// that was done is handled again within the guard's Retention.
//
// If a process dies after the handler has booked and before Redis has noted it, it is not
// known whether the event is done. The guard's InDoubt decides; with Retry, the default,
// the event is handled again. So the handler's own transaction should carry Event.Key
// under a unique constraint.
package callback
