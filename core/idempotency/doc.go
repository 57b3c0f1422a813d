// Package idempotency has a request, a message or a job that arrives several
// times run once, and gives the ones that come later the result of the first.
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
// While one Redis primary keeps its data, at most one caller at a time has the
// claim of a key, and once it was concluded as done nobody gets it again until
// Retention has passed. It is not "exactly once": a process can die after it did
// something and before it could say so, and no store but the one in which it was
// done can close that gap. What nobody knows about is [InDoubt]'s to settle. The
// claim's fence and key, written in the transaction that does the work, settle it
// for good:
//
//	INSERT INTO orders (idempotency_key, fence, …) VALUES ($1, $2, …) -- key UNIQUE
//
// When Redis cannot answer, nothing runs: an error is returned before the work
// is begun. When it is away afterwards, the work is done, and its result is stored
// as soon as Redis answers again.
//
// # Lease and retention
//
// A claim has a lease, which is renewed while its process lives, so that a run may
// take as long as it has to and that of a process that died is noticed soon. The
// record lives for the retention, which is for how long a repetition is known as
// one.
//
// # Errors
//
// Why a key is not the caller's to run is one of a few values, such as
// [ErrInFlight], to be told apart with errors.Is. Where Redis could not answer it
// is a [script.Error] of neap's core/script.
package idempotency
