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
// never admits more than its limit in any window, and keeps every permit.
//
// # Where the guarantee ends
//
// A limit is exact while one Redis primary keeps its data. A failover may lose
// the last writes, and with them permits that were taken; an evicted key is a
// subject never seen. On a server before Redis 7.2 a token bucket may drain up
// to one millisecond less with an admitted request, never more. A call whose
// reply was lost has taken its permits or not, and is not sent again.
package limit
