// Package limit limits how often requests may run. The state is in Redis.
//
// Make a limiter once, and ask it for each request:
//
//	limiter, err := limit.New(rdb, "api", []limit.Policy{
//		limit.TokenBucket{Rate: 10, Per: time.Second, Burst: 20},
//		limit.FixedWindow{Limit: 1000, Window: time.Hour},
//	}, nil)
//	if err != nil {
//		return err
//	}
//	decision, err := limiter.Take(ctx, userID)
//	if err != nil {
//		return err
//	}
//	if !decision.Allowed {
//		return fmt.Errorf("too many requests: retry after %v", decision.RetryAfter)
//	}
//
// A decision is one atomic Lua script, in one round trip. It counts in exact integers and
// uses the server's clock.
//
// A [Policy] is data. A [Limiter] has one or more policies for the same subject, such as
// 10 a second and 1,000 an hour. If one policy denies a request, no policy is charged. A
// denial writes nothing but what [WithBan] counts, what [WithLease] takes back, and repairs.
//
// # Which policy
//
//   - A [TokenBucket] admits at most Burst + Rate·t in any time t.
//   - A [FixedWindow] costs least. Across the end of a window it admits up to twice its
//     limit.
//   - A [SlidingWindow] evens that out as far as two counters can.
//   - A [SlidingLog] never admits more than its limit in any window. It stores every
//     permit.
//   - A [CalendarWindow] is a fixed window of an hour, a day, a week or a month that
//     begins by the clocks of a place.
//
// # Waiting, giving back, watching
//
// [Limiter.Wait] waits for a permit. In one process, the callers of a subject are served in
// the order of their calls. [Decision.Refund] gives back what a decision took. It does so
// once, and only while the permits are not free again by themselves. A [Shadow] policy is
// decided with the others and never enforced, so that you see what it would do.
//
// # Requests in flight
//
// Package inflight limits how many requests run at once.
//
// # When Redis cannot decide
//
// A decision takes no longer than its budget, 50 ms by default, whatever the client's own
// time-outs are. The exceptions are:
//
//   - Until a server has answered for the first time, a call may take longer: the store's
//     FirstContact, a second by default.
//   - While the process is short of CPU, a call may take up to a second longer: see
//     store.Queued.
//   - If a process has no prepaid permits left, a decision may take two budgets.
//   - If a process learns of a new [Limiter.Override], each further call has a budget of
//     its own.
//   - A hook of the client may wait for longer: see package store.
//
// If Redis is slow, gone or full, or refuses the client, the [store.FailMode] decides.
// FailLocal, the default, applies the same policies in this process; FailOpen admits every
// request, except those of subjects that this process knows to be banned or on hold;
// FailClosed admits none and returns the error. A decision of FailLocal or FailOpen is
// marked Degraded and has its Cause.
//
// After several calls in a row without an answer, a breaker opens. Decisions then cost
// microseconds, because nothing is sent except one call every quarter of a second, until
// one is answered. Each node of a cluster has its own breaker. The log says when an
// outage begins and when it is over.
//
// # Where the guarantee ends
//
// A limit is exact while one Redis primary keeps its data. It is not exact in these
// cases:
//
//   - A failover may lose the last writes, and the permits that they counted. If a key is
//     evicted, its subject begins anew.
//   - If the server's clock is set ahead, windows and debts end as much earlier. If it is
//     set back over the beginning of a calendar window, what that one has counted is
//     forgotten.
//   - On a server before Redis 7.2, a token bucket may drain up to one millisecond less
//     with an admitted request. It never drains more. A calendar window may leave a
//     request uncounted that comes in its last millisecond.
//   - After a Reset, a Refund or a Settle of an earlier decision may give back permits that
//     were taken since. The limiter tells two windows apart by when they end. It knows that
//     to a thousandth of the time since the decision, plus 10 s, or almost half a window if
//     that is less.
//   - A call whose reply was lost may or may not have taken its permits. It is not sent
//     again.
//   - While decisions are degraded with FailLocal, N processes admit up to N times the
//     limit, beside what Redis had admitted before. If you tell them how many they are
//     (Options.Instances), they divide what was left: at most the limit, or their
//     number.
package limit
