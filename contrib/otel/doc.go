// Package otel tells OpenTelemetry what a store of neap does. Call Observe once, and everything that is made on the
// store has metrics, and notes its decisions on the spans of your requests:
//
//	import neapotel "github.com/neap-go/neap/contrib/otel"
//
//	stop, err := neapotel.Observe(rdb, nil) // what limit.New, lock.New and the others take
//	if err != nil {
//		return err
//	}
//	defer stop()
//
// It makes no spans: redisotel, of go-redis, has one for each call to Redis. If you use Prometheus without OpenTelemetry, package
// contrib/prometheus has the same figures.
//
// # Metrics
//
//	neap.decision.duration   histogram, s                    calls that asked for permits, a slot, a run or units
//	neap.lock.wait.duration  histogram, s                    how long callers waited for a lock
//	neap.shadow_denials      counter, {denial}               requests that a shadow policy would have denied
//	neap.changes             counter, {change}               how grants ended; servers that were lost or came back
//	neap.inflight.active     up-down counter, {slot}         slots that this process holds
//	neap.lock.active         up-down counter, {lock}         locks that this process holds
//	neap.guard.active        up-down counter, {claim}        claims that this process holds
//	neap.stock.active        up-down counter, {reservation}  reservations that this process holds
//	neap.limit.waiting       up-down counter, {caller}       callers that wait for permits
//	neap.lock.waiting        up-down counter, {caller}       callers that wait for a lock
//	neap.background.active   up-down counter, {call}         calls that are repeated or taken back, because Redis did not answer; not those of limits
//	neap.redis.status        up-down counter, 1              1 if the server answers, 0 during an outage
//	neap.redis.held_back     up-down counter, 1              1 while a breaker holds calls back
//
// neap.changes is 0 before the first lock is lost and before the first claim is in doubt, so that the first one is an increase.
//
// There is no semantic convention for rate limits and locks yet. The names follow OpenTelemetry's naming rules and
// the metrics of ASP.NET Core (aspnetcore.rate_limiting.*).
//
// # Attributes
//
//	neap.primitive  limit, inflight, lock, guard, stock; of neap.changes also server
//	neap.name       of the limiter, locker, guard or stock
//	neap.policy     of limits and requests in flight, if one decided
//	neap.outcome    as in package core/store, with underscores: granted, denied, in_doubt, …
//	error.type      if Redis did not answer as it should, or the caller left: not_executed, maybe_executed, configuration,
//	                failed, canceled, deadline_exceeded, _OTHER
//	server.address, server.port  of neap.redis.*, and of neap.changes about a server
//
// A decision is degraded, made without Redis, if it has an error.type while its outcome is granted or denied.
//
// A span that records has these of the last call of each primitive: neap.limit.name, neap.limit.policy,
// neap.limit.outcome and neap.limit.degraded; the same of neap.inflight; the name and the outcome of neap.lock,
// neap.guard and neap.stock; and as neap.lock.change, neap.guard.change and neap.stock.change what became of it.
//
// # Bounds
//
// No attribute has a key, a subject, an item or the text of an error. There is a neap.policy for each policy that
// limiters of a name were made with, up to 200, and for the first 20 others of that name, such as those of With and of a
// gate's Policies. The rest share the policy "_other". The names of a primitive after the first 200 share the name
// "_other". Together these have 20 policies and "_other".
//
// The SDK has a bound of its own, which may be lower: it keeps 2,000 series of an instrument apart, and adds up the rest
// under otel.metric.overflow. WithCardinalityLimit of its package metric changes that.
//
// An event costs 0.7 to 1.8 µs (BenchmarkEvent) and no memory.
package otel
