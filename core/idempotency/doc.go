// Package idempotency runs a request, a message or a job that arrives several times
// once, and returns the result of the first to those that come later.
//
//	guard, err := idempotency.New(rdb, "orders", nil)
//	if err != nil {
//		return err
//	}
//	receipt, err := guard.Do(ctx, "order-17", func(ctx context.Context) ([]byte, error) {
//		return charge(ctx)
//	})
//
// # The promise, and where it ends
//
// While one Redis primary keeps its data, at most one caller at a time has the claim of
// a key. Once the claim was concluded as done, no caller gets it again until Retention
// has passed. This is not "exactly once": a process can die after it did the work and
// before it said so. Only the database in which the work was done can close that gap.
// [InDoubt] says what happens then. To be sure, write the claim's fence and
// key in the transaction that does the work:
//
//	INSERT INTO orders (idempotency_key, fence, …) VALUES ($1, $2, …) -- key UNIQUE
//
// If Redis cannot answer, nothing runs: you get an error before the work begins. If
// Redis is down when the work ends, the result is stored as soon as Redis answers again.
//
// # Lease and retention
//
// A claim has a lease, which is renewed while its process lives. So a run may take as
// long as it needs, and the death of a process is noticed soon. The record lives for the
// retention: for that long a repetition is recognized.
//
// # Errors
//
// If the work is not the caller's to do, the error is one of a few values, such as
// [ErrInFlight]; compare them with errors.Is. If Redis could not answer, the error is a
// [script.Error] of neap's core/script.
package idempotency
