package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// TestErrSaysDoubtOnlyOfARecord: a conclusion that should leave the work in doubt leaves none
// if the record is gone.
func TestErrSaysDoubtOnlyOfARecord(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		_, rdb := redistest.Miniredis(t)
		g := guardOf(t, rdb, "p", idempotency.Reject{}, nil)
		c := begin(t, g, "key", "")
		var want error
		if gone {
			want = idempotency.ErrLost
			if _, err := g.Forget(t.Context(), "key"); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Conclude(t.Context(), idempotency.Unknown()); !same(err, want) {
			t.Errorf("gone %t: Conclude: got %v, want %v", gone, err, want)
		}
		if err := c.Err(); !errors.Is(err, idempotency.ErrConcluded) || errors.Is(err, idempotency.ErrInDoubt) == gone {
			t.Errorf("gone %t: got %v, want %v, and a doubt only of a record", gone, err, idempotency.ErrConcluded)
		}
	}
}

// TestARunCountsUntilItIsNoted: whoever waits for Running and Concluding to be 0 before the
// process ends waits for conclusions too.
func TestARunCountsUntilItIsNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, slow{inBubble(t)}, "p", &idempotency.Options{Budget: time.Second})
		c := begin(t, g, "key", "")
		ended := make(chan error, 1)
		go func() {
			ended <- c.Conclude(context.WithValue(t.Context(), held{}, true), idempotency.DoneWith(nil))
		}()
		synctest.Wait()
		if s := g.Stats(); s.Running+s.Concluding != 1 {
			t.Errorf("while the first call is on its way: got %d running and %d concluding, want 1 together", s.Running, s.Concluding)
		}
		if err := <-ended; err == nil {
			t.Error("Conclude without an answer: got no error, want one")
		}
		synctest.Wait()
		if s := g.Stats(); s.Running != 0 || s.Concluding+int(s.Concluded) != 1 {
			t.Errorf("then: got stats %+v, want none running, and 1 concluding or concluded", s)
		}
		left(t, g)
	})
}
