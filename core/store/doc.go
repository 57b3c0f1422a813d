// Package store holds what limiters, locks, guards and stock on one Redis share: options,
// breakers, the queue, renewals, the log of outages, and observers.
//
// You need it only if you want other options than the defaults:
//
//	st, err := store.Open(rdb, &store.Options{Prefix: "shop"})
//	if err != nil {
//		return err
//	}
//	limiter, err := limit.New(st, "api", policies, nil)
//	locker, err := lock.New(st, "orders", nil)
//
// Every constructor takes a [Store] or a go-redis client. If you give one client to
// several constructors, they share one store: see [Of].
//
// # What a store does
//
//   - Each call ends within its budget. There are three exceptions. Until a server has first
//     answered, calls may take longer: see Options.FirstContact. While the process is short
//     of CPU, they may too: see [Queued]. A hook of a client with ContextTimeoutEnabled that
//     waits for Done of its context may wait for the caller's: it needs a time-out of its own.
//   - A breaker for each server and budget spares callers the wait for a server that does
//     not answer. While it is open, calls fail at once, with [script.ErrNotExecuted]. One
//     call every quarter of a second is sent nevertheless. So is every call that keeps,
//     concludes or takes back a grant.
//   - A caller's own deadline is no failure of Redis. A call that it ends returns the error
//     of the caller's context: no failure mode decides, and nothing counts it. If all
//     callers have less time than the budget, the store asks the server itself, one probe at
//     a time, to find out whether it answers.
//   - While several callers wait, their calls are sent together: see [Queued].
//   - After a call that had no connection in time, the store makes one in the background, by
//     PING, and one at a time for each server.
//   - The log says once for each server and outage that Redis does not answer, and that
//     it answers again. An [Observer] and [Store.Gauges] report the rest.
//
// # Where the guarantee ends
//
// A store never repeats a call that may have run. If the answer to a call is lost, the
// call ran once or not at all: see package script. Locks, guards, stock and the Settle of
// a limit repeat such calls themselves: there, making the same call twice has the effect
// of making it once. A process that ends without [Store.Drain] leaves grants in doubt
// until their leases end, and prepaid permits taken until
// their window ends or they have refilled.
package store
