// Package prometheus counts what a store of neap does, for Prometheus. Register a collector once, and everything
// that is made on the store is in your /metrics, now and later:
//
//	import neapprometheus "github.com/neap-go/neap/contrib/prometheus"
//
//	collector, err := neapprometheus.New(rdb, nil) // what limit.New, lock.New and the others take
//	if err != nil {
//		return err
//	}
//	prometheus.MustRegister(collector)
//
// If you use OpenTelemetry, package contrib/otel has the same figures.
//
// # Metrics
//
//	neap_decisions_total            primitive, name, policy, outcome, degraded   calls that asked for permits, a slot, a lock, a run or units
//	neap_decision_duration_seconds  primitive, name, outcome                     how long they took, without those of locks
//	neap_lock_wait_duration_seconds name, outcome                                how long callers waited for a lock
//	neap_shadow_denials_total       name, policy                                 requests that a shadow policy would have denied
//	neap_changes_total              primitive, name, outcome                     how grants ended; servers that were lost or came back
//	neap_inflight_active            name                                         slots that this process holds
//	neap_lock_active                name                                         locks that this process holds
//	neap_guard_active               name                                         claims that this process holds
//	neap_stock_active               name                                         reservations that this process holds
//	neap_limit_waiting              name                                         callers that wait for permits
//	neap_lock_waiting               name                                         callers that wait for a lock
//	neap_background_active          primitive, name                              calls that are repeated or taken back, because Redis did not answer; not those of limits
//	neap_redis_up                   server                                       1 if the server answers, 0 during an outage
//	neap_redis_held_back            server                                       1 while a breaker holds calls back
//
// A primitive is limit, inflight, lock, guard or stock; in neap_changes_total also server, whose name is its
// address. Outcomes are those of package core/store, with underscores.
//
//	granted denied held replayed mismatched in_doubt no_result refused disagreed failed canceled   decisions
//	completed abandoned in_doubt refused disagreed overtaken lost back                             changes
//
// Degraded is "true" if the failure mode made the decision, without Redis. The duration of a limit's decision is that of
// its last call to Redis. The duration of a guard's includes the wait for another caller's run.
//
// # What to watch
//
// contrib/dashboards has a dashboard for Grafana and alerts for Prometheus, and [Observe] says what to do about each.
// In short:
//
//	rate(neap_decisions_total{degraded="true"}[5m])                               decisions without Redis
//	sum by (name, policy) (rate(neap_decisions_total{outcome="denied"}[5m]))      denials of each policy
//	histogram_quantile(0.99, sum by (le) (rate(neap_decision_duration_seconds_bucket{primitive="limit"}[5m])))
//	neap_redis_held_back == 1                                                     a breaker is open
//	increase(neap_changes_total{primitive="lock",outcome="lost"}[5m]) > 0         two may have worked at once
//	increase(neap_changes_total{primitive="guard",outcome="in_doubt"}[5m]) > 0    an operator has to say what became of a run
//	increase(neap_decisions_total{primitive="stock",outcome="disagreed"}[5m]) > 0 somebody edits records
//
// # Bounds
//
// No label has a key, a subject, an item or the text of an error. There is a label for each policy that limiters of
// a name were made with, up to 200, and for the first 20 others of that name, such as those of With and of a gate's
// Policies. The rest share the policy "_other". The names of a primitive after the first 200 share the name "_other".
// Together these have 20 policies and "_other".
//
// An event costs 0.3 to 0.4 µs and no memory (BenchmarkEvent).
//
// [Observe]: https://github.com/neap-go/neap/blob/main/docs/observe.md
package prometheus
