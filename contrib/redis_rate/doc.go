// Package redis_rate has the API of github.com/go-redis/redis_rate/v10 and decides by
// a [limit.Limiter]. To migrate, change the import path:
//
//	import "github.com/neap-go/neap/contrib/redis_rate"
//
//	limiter := redis_rate.NewLimiter(rdb)
//	res, err := limiter.Allow(ctx, "project:123", redis_rate.PerSecond(10))
//
// The names, the signatures and the meaning of the results are those of v10. The tests of
// both run the same suite. [Coming from redis_rate] shows how to switch a fleet that is
// running.
//
// # What stays
//
// A [Limit] is a bucket of Burst permits, in which Rate permits come back in each
// Period, one after the other. Every call for a key shares one state, in every process
// and whatever its Limit is. A call that is denied takes nothing. An unreachable Redis
// is an error: [NewLimiter] makes a limiter with store.FailClosed, so it admits nothing
// that Redis did not grant.
//
// # What differs
//
//   - The state begins afresh. redis_rate keeps a key in "rate:<key>", and this package in
//     "neap:limit:redis_rate:{<key>}:rate!kept-bucket". A key with other characters than
//     those of an identifier, or with more than 64, stands there as a hash. Grant the Redis
//     user the keys neap:* and the commands that [Operations] lists.
//   - A round trip takes at most a second, whatever the time-outs of the client are, but
//     for the exceptions that [Operations] names. Its script runs at most once. Otherwise
//     the call is an error. redis_rate waits as long as the client does, which by default
//     sends the script again when a reply is lost, up to 4 times in all. After a row of
//     calls without an answer, calls fail at once until Redis answers.
//   - Permits are counted in whole millionths and microseconds, so nothing is lost to
//     rounding. redis_rate counts in floating point: of PerSecond(10) it tells 8 remaining
//     after the first permit. Its AllowAtMost also takes the fraction of a permit that is
//     there, and grants only the whole ones.
//   - Remaining of a denied call tells what could be taken, as its description says.
//     redis_rate always tells 0.
//   - AllowAtMost costs one round trip if it grants n permits or none, and usually two if
//     it grants some of them: the second takes what the first has found. If other callers
//     take these permits in between, it asks again, up to 8 times in all. If others are
//     faster each time, it is denied. It never grants more than there is.
//   - If the Limit of a key changes, the permits that are taken stay taken. They come
//     back at the Rate of the call that last took one, so a larger Rate takes effect with
//     the first call that is granted. Give limits of different rates keys of their own.
//     redis_rate keeps the time in which they come back, so that 10 permits at 10 a second
//     become one permit at one a second.
//   - An n below 0 is an error. redis_rate gives back permits for it.
//   - A Rate below 1, a Period below a millisecond and an empty key are errors. So are
//     numbers that cannot be counted exactly: Burst times 10^6, times the microseconds in
//     which a whole number of millionths of a permit come back, must be at most 2^51.
//     PerHour(625_000) and every smaller one can be counted, and PerSecond(2_000_000_000).
//   - The methods have pointer receivers, so that a nil *Limiter is an error and no panic.
//   - A limiter keeps some memory, where redis_rate has none. Make it once and keep it.
//
// A Burst below 1 admits nothing, as in redis_rate. It asks Redis nothing.
//
// # Going on from here
//
// [New] takes the options of a [limit.Limiter], for another budget or failure mode, and a
// store.Store, for another prefix of keys. The calls stay as they are. A [limit.Limiter]
// by itself also has windows, sliding windows, several policies in one decision, waiting
// and refunds.
//
// [Coming from redis_rate]: https://github.com/neap-go/neap/blob/main/docs/coming-from/redis_rate.md
// [Operations]: https://github.com/neap-go/neap/blob/main/docs/operations.md
package redis_rate
