// Package inflight limits how many requests of a subject run at once, in all processes
// together.
//
//	exports, err := inflight.New(rdb, "exports", 2, nil)
//	if err != nil {
//		return err
//	}
//	slot, err := exports.Try(ctx, "tenant=acme")
//	if err != nil {
//		return err
//	}
//	defer slot.Release(ctx)
//	if !slot.Allowed {
//		return errBusy
//	}
//
// Each request holds a slot with a lease, which the process renews. So a process that dies
// gives its slots back.
//
// # When Redis cannot decide
//
// A call takes no longer than its budget, 50 ms by default, whatever the client's own
// time-outs are, with the exceptions that package limit names: first contact, and a process
// that is short of CPU. A Try takes longer if Redis has lost slots that the process holds:
// each call that has them counted again has a budget of its own.
//
// If Redis is slow, gone or full, or refuses the client, the store.FailMode decides
// ([Options]). A slot of store.FailLocal or store.FailOpen is marked Degraded and has its
// Cause. The breaker and the log are those of package limit.
//
// # Where the guarantee ends
//
// No more slots are granted than the limit while one Redis primary keeps its data, its
// clock does not jump ahead, and Redis makes every decision. [Limiter] says what happens
// otherwise.
package inflight
