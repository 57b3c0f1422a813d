// Package neaptest is for unit tests of what uses neap: a lock that is lost at work, an order that comes twice or a
// Redis that is gone takes a test of a few lines, no server and no time.
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
// guards, stock and callbacks alike. They reach it without sockets, so in a bubble of testing/synctest time is that of
// the bubble, for Redis, for neap and for your handlers. time.Sleep(10 * time.Minute) takes no time and ends what ten minutes end. While
// anything can run, time stands still there. So a budget never ends because the machine is slow. Outside of a bubble all
// works by the clock of the machine, budgets included.
//
// Make the Redis, its clients and your application in the bubble. With Fiber, send one request outside of
// a bubble first: fasthttp starts a goroutine for the process then, and a bubble waits for those that began in it.
//
// # Scenes
//
// [Redis.Lose], [Redis.Slow], [Redis.Fill], [Redis.LoseReply], [Redis.Pause] and [Redis.Failover] are a line each; [Redis.Restore] ends
// them all. They happen on the connections and in the server, so what you test is the client, the queue, the breaker and
// what is taken back in the background as they are in production. neap logs lost servers as ever.
//
// # Asserts
//
// [AssertLimited], [AssertRunsOnce] and [AssertOneAtATime] send requests to handlers of any framework, by a [Send],
// and [Routes] finds the routes that stand behind no guard or no limit.
//
// # What it does not prove
//
// miniredis is not Redis. It runs Lua with other numbers and other errors, it uses no memory and has no ACL, and there is no
// cluster. neap's own tests run its scripts on real servers; for a script of yours
// there is core/script/scripttest. Nor does a Redis in the same process prove that your budgets and pools suffice.
//
// Only tests import this package: it compiles miniredis.
package neaptest
