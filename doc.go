// Package neap is the overview of this module, and contains no code.
//
// neap gives Go HTTP services rate limits, limits on requests in flight, locks,
// idempotency keys, payment callbacks and stock. They are exact across all instances of a
// service, and take one round trip each to the Redis or Valkey that you already run. A
// decision is one Lua script, which Redis runs atomically. Adapters mount them in net/http,
// Gin, Echo v4 and v5, Fiber v2 and v3, Hertz, Kratos, and gRPC.
//
// This server admits 10 requests a second from each address, with bursts of 20. It needs
// a Redis on localhost:6379:
//
//	package main
//
//	import (
//		"fmt"
//		"log"
//		"net/http"
//		"time"
//
//		"github.com/redis/go-redis/v9"
//
//		"github.com/neap-go/neap/core/gate"
//		"github.com/neap-go/neap/core/limit"
//		"github.com/neap-go/neap/nethttp"
//	)
//
//	func main() {
//		rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//		limiter, err := limit.New(rdb, "api", []limit.Policy{
//			limit.TokenBucket{Rate: 10, Per: time.Second, Burst: 20},
//		}, nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		limited := nethttp.Middleware(gate.RateLimit(limiter, gate.ByIP(nil), nil))
//		http.Handle("GET /hello", limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
//			fmt.Fprintln(w, "hello")
//		})))
//		log.Fatal(http.ListenAndServe("localhost:8080", nil))
//	}
//
// A request over the limit gets a 429 with Retry-After and the RateLimit header fields.
// It does not reach the handler, and it takes nothing from the limit. Behind a proxy, list
// the proxy in gate.IPOptions. Otherwise all clients share one limit: that of the proxy's
// address.
//
// # Packages
//
// A primitive decides. You can call it without HTTP:
//
//   - [github.com/neap-go/neap/core/limit]: how often requests may run.
//   - [github.com/neap-go/neap/core/inflight]: how many requests may run at once.
//   - [github.com/neap-go/neap/core/lock]: one holder at a time, a job once a tick, one
//     leader. A fence lets a database reject the writes of a holder that lost its lock.
//   - [github.com/neap-go/neap/core/idempotency]: work that runs once for each key, and
//     the stored result for each repeat.
//   - [github.com/neap-go/neap/core/stock]: a finite number of units, reserved, paid or
//     given back.
//
// A gate puts a primitive in front of a handler, and an endpoint answers each request
// itself. Neither knows the framework:
//
//   - [github.com/neap-go/neap/core/gate]: the gates, and the keys by which they count: an
//     address, a header, a route, a parameter, a field of the body.
//   - [github.com/neap-go/neap/core/callback]: endpoints for the callbacks of Stripe,
//     PayPal, Adyen, Square, Alipay, WeChat Pay, GitHub, Shopify and Standard Webhooks.
//
// An adapter mounts gates and endpoints in a framework. Your program compiles only the
// framework that it uses:
//
//   - [github.com/neap-go/neap/nethttp]: net/http, chi, gorilla/mux, go-zero.
//   - [github.com/neap-go/neap/ginlimit]: Gin.
//   - [github.com/neap-go/neap/echolimit]: Echo v4.
//   - [github.com/neap-go/neap/echo5limit]: Echo v5. It is a module of its own.
//   - [github.com/neap-go/neap/fiberlimit]: Fiber v2.
//   - [github.com/neap-go/neap/fiber3limit]: Fiber v3. It is a module of its own.
//   - [github.com/neap-go/neap/hertzlimit]: Hertz. It is a module of its own.
//   - [github.com/neap-go/neap/grpclimit]: gRPC servers and clients. It is a module of its own.
//   - [github.com/neap-go/neap/kratoslimit]: Kratos v2, over HTTP and gRPC. It is a module of its own.
//
// These packages are for tests, operation, scripts of your own, and adapters of your own:
//
//   - [github.com/neap-go/neap/neaptest]: unit tests without Redis and in virtual time,
//     and a Redis that fails when a test says so.
//   - [github.com/neap-go/neap/console]: a page that shows what each limit admits and
//     denies. You mount it in your service.
//   - [github.com/neap-go/neap/contrib/prometheus] and
//     [github.com/neap-go/neap/contrib/otel]: metrics and traces. Each is a module of its
//     own.
//   - [github.com/neap-go/neap/cmd/neap]: a command that checks a Redis, watches limits
//     and changes them. It is a module of its own.
//   - [github.com/neap-go/neap/core/store]: what the primitives share: the key prefix, the
//     time budget, the circuit breakers, the observers.
//   - [github.com/neap-go/neap/core/outgoing]: limits on calls to somebody else's API, of
//     which nethttp.NewTransport is made.
//   - [github.com/neap-go/neap/core/script] and
//     [github.com/neap-go/neap/core/script/scripttest]: run and test Lua scripts of your
//     own in the same way.
//   - [github.com/neap-go/neap/core/gate/adapter] and
//     [github.com/neap-go/neap/core/gate/gatetest]: what an adapter for another framework
//     is made of, and the tests that it must pass.
//   - [github.com/neap-go/neap/lua]: the Lua scripts, each with a header that says what it
//     reads, returns and writes.
//   - [github.com/neap-go/neap/contrib/redis_rate]: the API of go-redis/redis_rate on
//     neap, for programs that move.
//
// # Where the guarantee ends
//
//   - A limit is exact, a lock exclusive and a stock never oversold while one Redis primary
//     keeps its data. A failover can lose the last writes, and an evicted key is forgotten.
//     For money, let your database check a fence or a unique key too.
//   - While Redis is unreachable, each process enforces the limits on its own. N processes
//     then admit up to N times the limit, or share it if you tell them their number. You
//     can choose to admit every request, or none. The gates of locks, guards and stock
//     answer 503.
//   - A call whose reply was lost may have taken its permits. neap does not send it again.
//   - A process that dies between its work and the note that the work is done leaves a
//     gap. Only your own transaction closes it.
//
// Each package says where its own guarantee ends.
//
// # Versions
//
// neap needs Go 1.26 and a go-redis v9 client. Before v1 the API may change, and the
// [changelog] says where.
//
// # Documentation
//
//   - [All pages, by question]
//   - [Recipes]: code to copy for each use case
//   - [Coming from another library]: its calls, the calls of neap, and what differs
//   - [Operations]: what a slow, dead or full Redis does, how much memory it needs, and which
//     permissions
//   - [Compatibility]: what may change from version to version, and what may not
//   - [A guide to Lua on Redis]: from the first EVAL to production
//   - [The design]: the architecture, and the reasons for it
//
// [changelog]: https://github.com/neap-go/neap/blob/main/CHANGELOG.md
// [All pages, by question]: https://github.com/neap-go/neap/blob/main/docs/README.md
// [Recipes]: https://github.com/neap-go/neap/blob/main/docs/recipes.md
// [Coming from another library]: https://github.com/neap-go/neap/blob/main/docs/coming-from/README.md
// [Operations]: https://github.com/neap-go/neap/blob/main/docs/operations.md
// [Compatibility]: https://github.com/neap-go/neap/blob/main/docs/compatibility.md
// [A guide to Lua on Redis]: https://github.com/neap-go/neap/blob/main/docs/guide/README.md
// [The design]: https://github.com/neap-go/neap/blob/main/docs/design.md
package neap
