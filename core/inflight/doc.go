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
// # Where the guarantee ends
//
// No more slots are granted than the limit while one Redis primary keeps its data, its
// clock does not jump ahead, and Redis makes every decision. [Limiter] says what happens
// otherwise.
package inflight
