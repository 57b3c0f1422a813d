package call

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func budgetOf(ctx context.Context, d time.Duration) *budget {
	b := new(budget)
	b.begin(ctx, time.Time{}, d)
	return b
}

// TestAWaiterIsWokenByItsOwnEndOnly: a waiter that the last call's end may still wake
// would end the next call's wait.
func TestAWaiterIsWokenByItsOwnEndOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ws waiters
		unwoken := func(after string) {
			t.Helper()
			w := ws.get(budgetOf(t.Context(), time.Minute))
			defer ws.put(w)
			synctest.Wait()
			if len(w.woken) != 0 || w.Err() != nil {
				t.Fatalf("after %s of an earlier call: got a waiter with Err %v, want one that nothing wakes",
					after, w.Err())
			}
		}
		for range 50 { // a pool may forget what it was given
			w := ws.get(budgetOf(t.Context(), time.Millisecond))
			time.Sleep(2 * time.Millisecond)
			ws.put(w)
			unwoken("the budget")

			ctx, cancel := context.WithCancel(t.Context())
			w = ws.get(budgetOf(ctx, time.Minute))
			cancel()
			ws.put(w)
			unwoken("the context")

			ctx, cancel = context.WithCancel(t.Context())
			ws.put(ws.get(budgetOf(ctx, time.Millisecond)))
			cancel()
			time.Sleep(2 * time.Millisecond)
			unwoken("what came after the end")
		}
	})
}

// TestAWaiterTellsWhatEndedIt: this call's budget, or its caller's context.
func TestAWaiterTellsWhatEndedIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ws waiters
		for i := range 50 {
			ws.put(ws.get(budgetOf(t.Context(), time.Hour))) // to be used again
			budget, want := time.Second, context.DeadlineExceeded
			if i%2 == 0 {
				budget, want = time.Minute, context.Canceled
			}
			ctx, cancel := context.WithCancel(t.Context())
			stop := time.AfterFunc(2*time.Second, cancel)
			w := ws.get(budgetOf(ctx, budget))
			began := time.Now()
			<-w.Done()
			took, err := time.Since(began), w.Err()
			if took != min(budget, 2*time.Second) || !errors.Is(err, want) {
				t.Fatalf("with the budget %v: got %v after %v, want %v", budget, err, took, want)
			}
			ws.put(w)
			stop.Stop()
			cancel()
		}
	})
}
