// Package outgoing limits the calls that your processes make together to somebody else's API.
// nethttp.NewTransport and the client interceptors of grpclimit are made of it. Use it by
// itself for a client of another protocol.
//
//	calls, err := outgoing.New(limiter, nil)
//	...
//	call, err := calls.Begin(ctx, "api.example.com", 1, nil)
//	if err != nil {
//		return err // a *limit.LimitedError, if the limit is reached
//	}
//	defer call.End(ctx, -1)
//	answer, err := ask(ctx)
//	...
//	call.Answered(ctx, answer.RetryAfter, answer.TooMany)
//
// # What the partner says
//
// If an answer says that the partner wants no calls for a while, no process makes one until
// then ([limit.Limiter.Hold]). Calls that are on their way are not stopped. A hold that Redis
// has lost, by a failover or an empty restart, has ended.
//
// # What a partner sees
//
// A limit bounds how many calls begin here in a time. They take different times to arrive, so
// a partner may count more in a window: if those times differ by a second, as many more as begin
// here in a second. So let them begin evenly, by a limit.TokenBucket with a small Burst:
//
//	Rate in the partner's window + Burst <= what the partner allows
//
// Leave room for those, such as 5 % if the times differ by a twentieth of the window. A
// window or a log that lets its whole limit begin at once needs as much room as its limit.
package outgoing
