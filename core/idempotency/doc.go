// Package idempotency runs the work behind a key once, although the request, message or
// job arrives several times. Later callers get the result of the first.
//
//	guard, err := idempotency.New(rdb, "orders", idempotency.Retry{}, nil)
//	if err != nil {
//		return err
//	}
//	receipt, err := guard.Do(ctx, "order-17", func(ctx context.Context) ([]byte, error) {
//		return charge(ctx)
//	})
//
// # Claims
//
// The first caller of a key gets a claim and does the work. It then says how the work
// ended: see [Claim.Conclude]. [Guard.Do] does all of that. [Guard.Begin] asks once and
// does not wait. [Guard.Await] waits while another caller does the work.
//
// # Lease and retention
//
// A claim has a lease, which neap renews while the process lives. So a run may take as
// long as it needs, and the death of a process is noticed soon. The record of a key lives
// for the retention: for that time a repetition is recognized.
//
// # Errors
//
// If the work is not the caller's to do, the error is one of a few values, such as
// [ErrInFlight]. Compare them with errors.Is. If Redis could not answer, the error is a
// [script.Error] of neap's core/script.
//
// # Where the promise ends
//
// While one Redis primary keeps its data, at most one caller at a time has the claim of a
// key. Once the claim was concluded as done, no caller gets it again until Retention has
// passed.
//
// This is not "exactly once": a process can die after it did the work and before it said
// so. A [Policy] says what happens then. Only the database in which the work was done can
// close that gap. To be sure, write the claim's fence and key in the transaction that
// does the work:
//
//	INSERT INTO orders (idempotency_key, fence, …) VALUES ($1, $2, …) -- key UNIQUE
//
// If Redis cannot answer, nothing runs, unless [Guard.WithFail] says otherwise: you get
// an error before the work begins. If Redis is down when the work ends, the result is
// stored as soon as Redis answers again.
//
// [What an idempotency guard promises] has every case, and what to do about it.
//
// [What an idempotency guard promises]: https://github.com/neap-go/neap/blob/main/docs/idempotency.md
package idempotency
