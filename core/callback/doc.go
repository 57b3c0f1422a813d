// Package callback makes endpoints for payment providers and other senders that send each
// event until it is acknowledged. An endpoint handles each event once, and acknowledges
// it only after that is done.
//
//	endpoint, err := callback.New(callback.Stripe(), guard, verify, book, &callback.Options{OnError: report})
//	if err != nil {
//		return err
//	}
//	mux.Handle("POST /callbacks/stripe", nethttp.Handler(endpoint))
//
// # The parts of an endpoint
//
//   - A [Preset], such as [Stripe], says what a provider sends and which answers it
//     expects.
//   - A guard of core/idempotency remembers which events are done. Its Retention must be
//     Preset.Retention or more: the default, 24 h, is too short for each preset of this
//     package.
//   - A [Verify], such as that of [VerifyStripe], proves that a delivery is the
//     provider's.
//   - A [Handler], which is your function, does what an event asks for.
//   - Options.OnError, which is your function too, is told what was not acknowledged, and
//     what the handler has rejected. Nothing else tells of it.
//
// # Where the promise ends
//
// The provider is told that an event is done only after the handler has returned nil and
// Redis has noted it. Otherwise the provider is told to send the event again. It is then
// handled, unless Redis has noted by then that it was done. While Redis keeps its data, no
// event that it has noted as done is handled again within the guard's Retention.
//
// If a process dies after the handler has booked and before Redis has noted it, or cannot
// reach Redis until the claim's lease is over, it is not known whether the event is done. The
// guard's policy decides. With Retry the event may be handled again. So the handler's own
// transaction should carry Event.Key under a unique constraint.
//
// [Callbacks of payment providers] has a page for each provider.
//
// [Callbacks of payment providers]: https://github.com/neap-go/neap/blob/main/docs/callbacks/README.md
package callback
