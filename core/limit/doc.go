// Package limit holds rate limiters whose state is in Redis: one atomic Lua
// script a decision, exact integer arithmetic, the server's clock.
//
// A [Policy] is data; a [Limiter] is one or more policies on the same subject,
// such as 10 a second and 1,000 an hour. A request that one policy denies
// takes nothing from any, and writes nothing.
//
//	limiter, err := limit.New(rdb, "api", []limit.Policy{
//		limit.TokenBucket{Rate: 10, Per: time.Second, Burst: 20},
//		limit.FixedWindow{Limit: 1000, Window: time.Hour},
//	}, nil)
//	decision, err := limiter.Take(ctx, userID)
//
// # Which policy
//
// In any time t a [TokenBucket] admits Burst + Rate·t. A [FixedWindow] admits
// up to twice its limit across the end of a window, and costs least. A
// [SlidingWindow] evens that out as far as two counters can. A [SlidingLog]
// never admits more than its limit in any window, and keeps every permit. A
// [CalendarWindow] is a fixed window of an hour, a day, a week or a month that
// begins by the clocks of a place.
//
// # Waiting, giving back, watching
//
// [Limiter.Wait] waits for a permit, in the order of the calls. [Limiter.Refund]
// gives back what a decision took, once, and no later than it would have been
// free again by itself. A [Shadow] policy is decided with the others and never
// enforced, to see what it would do.
//
// # Requests in flight
//
// A [Concurrency] limits not how often but how many at once. Each request holds
// a slot on a lease, which is renewed while it runs and lapses when its process
// dies.
//
// # When Redis cannot decide
//
// A decision takes no longer than its budget, 50 ms by default, whatever the
// client's own time-outs are. Only until a server has first answered may a call take
// longer: the store's FirstContact, a second by default. A Redis that is slow, gone,
// full or refuses the client leaves the decision to the [FailMode]: the same policies in
// this process, which is the default, or everything, or nothing. Such a decision is
// marked Degraded and has its Cause. After a row of calls without an answer a
// breaker opens: decisions are not sent, but for one every quarter second, until
// one is answered, and cost microseconds. Each node of a cluster has its own. The
// log says when an outage begins and when it is over.
//
// # Where the guarantee ends
//
// A limit is exact while one Redis primary keeps its data. A failover may lose
// the last writes, and with them permits that were taken; an evicted key is a
// subject never seen. On a server before Redis 7.2 a token bucket may drain up
// to one millisecond less with an admitted request, never more. A call whose
// reply was lost has taken its permits or not, and is not sent again. While
// decisions are degraded N processes admit up to N times the limit with
// FailLocal, beside what Redis had admitted before. If Options.Instances tells them how
// many they are, they divide what was left, and stay close to the limit.
package limit
