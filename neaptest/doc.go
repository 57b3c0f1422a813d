// Package neaptest is for unit tests of code that uses neap. It takes a few lines, no server and no time to test
// what becomes of a lock that is lost at work, of an order that comes twice, or of a process whose Redis is
// gone.
//
//	func TestOrdersRunOnce(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			redis := neaptest.New(t)
//			var booked neaptest.Work // the handler begins with defer booked.Begin()()
//			one, other := shop(redis.Client(), &booked), shop(redis.Client(), &booked)
//			neaptest.AssertRunsOnce(t, &booked, order, neaptest.Handler(one), neaptest.Handler(other))
//		})
//	}
//
// # The clock
//
// [New] starts an embedded miniredis, and [Redis.Client] makes go-redis clients of it, for limits, slots, locks,
// guards, stock and callbacks alike. They reach it without sockets. So in a bubble of testing/synctest Redis, neap and
// your handlers all have the bubble's clock: time.Sleep(10 * time.Minute) takes no time, and afterwards every key, lease
// and window of ten minutes is over. The clock stands still while a goroutine of the bubble can run, so a budget never
// ends because the machine is slow. Outside of a bubble everything has the clock of the machine, budgets included.
//
// Make the Redis, its clients and your application in the bubble. With Fiber, send one request outside of any
// bubble first: with its first request fasthttp starts a goroutine that never ends, and a bubble waits for each
// goroutine that was started in it.
//
// # Scenes
//
// [Redis.Lose], [Redis.Slow], [Redis.Fill], [Redis.LoseReply], [Redis.Pause] and [Redis.Failover] are a line each; [Redis.Restore] ends
// them all. They happen on the connections and in the server, so the client, neap's queue, its breaker and its work in
// the background are those of production. neap logs a lost server here too.
//
// # Asserts
//
// [AssertLimited], [AssertRunsOnce] and [AssertOneAtATime] send requests to handlers of any framework, by a [Send],
// and [Routes] finds the routes that stand behind no guard or no limit.
//
// # What it does not prove
//
// miniredis is not Redis. Its Lua has other numbers and other errors, it counts no memory, and it has no ACL and no
// cluster. neap's own tests run its scripts on real servers; for a script of yours there is core/script/scripttest. Nor
// does a Redis in the same process prove that your budgets and pools suffice.
//
// Only tests import this package: it compiles miniredis.
package neaptest
