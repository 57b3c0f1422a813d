package idempotency_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// traced is the key of a value in a caller's context, which observers see.
type traced struct{}

// TestALossBesideDetached ends the lease between Begin and Detached. Observers are told with
// the values of Begin's context, and Detached does not race with that.
func TestALossBesideDetached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &redistest.CutClient{Client: inBubble(t)}
		told := make(chan any, 1)
		observe := func(ctx context.Context, e store.Event) {
			if e.Outcome == store.Lost && e.Primitive == store.Guard {
				told <- ctx.Value(traced{})
			}
		}
		st := storetest.Open(t, rdb, store.Options{})
		st.Observe(observe)
		g, err := idempotency.New(st, "test", idempotency.Retry{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		run, err := g.Begin(context.WithValue(t.Context(), traced{}, "of Begin"), "key", "")
		if err != nil {
			t.Fatal(err)
		}
		rdb.Cut("refused")
		time.Sleep(defaultLease)
		if ctx := run.Claim.Detached(); !errors.Is(context.Cause(ctx), idempotency.ErrExpired) {
			t.Errorf("a context of a lost claim: got the cause %v, want %v", context.Cause(ctx), idempotency.ErrExpired)
		}
		if got := <-told; got != "of Begin" {
			t.Errorf("the context of the loss: got the value %v, want that of Begin's context", got)
		}
	})
}

// TestALossIsReportedOnce deletes the record of a run that should be in doubt. A renewal
// or the conclusion reports the loss, the one that finds it first, also in the
// background.
func TestALossIsReportedOnce(t *testing.T) {
	t.Parallel()
	granted, lost := []store.Outcome{store.Granted}, []store.Outcome{store.Lost}
	for policy, its := range policies {
		if policy == "retry" {
			continue // the next caller runs, as it should
		}
		for name, c := range map[string]struct {
			passes       time.Duration // before the conclusion
			cut          bool
			before, then []store.Outcome
		}{
			"a renewal":                  {defaultLease, false, slices.Concat(granted, lost), nil},
			"the conclusion":             {0, false, granted, lost},
			"a conclusion in background": {0, true, granted, lost},
		} {
			t.Run(policy+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o := storetest.Outcomes{Of: store.Guard}
					rdb := &redistest.CutClient{Client: inBubble(t)}
					st := storetest.At(t, rdb, "p")
					st.Observe(o.Observe)
					g, err := idempotency.New(st, "test", its, nil)
					if err != nil {
						t.Fatal(err)
					}
					claim := begin(t, g, "key", "")
					if err := rdb.Del(t.Context(), nameOf("p", "key")).Err(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(c.passes)
					o.Are(t, "before the conclusion", c.before...)
					if c.cut {
						rdb.Cut("refused")
					}
					for range 2 {
						err := claim.Conclude(t.Context(), idempotency.Unknown())
						if errors.Is(err, idempotency.ErrLost) == c.cut || err == nil {
							t.Errorf("Conclude: got %v, want %v, or of a Redis that is cut another error",
								err, idempotency.ErrLost)
						}
					}
					rdb.Mend()
					time.Sleep(time.Minute)
					o.Are(t, "the conclusion, and later", c.then...)
					if s := g.Stats(); s.Lost != 1 || s.Abandoned != 1 || s.Running != 0 {
						t.Errorf("got stats %+v, want 1 lost, 1 abandoned and none running", s)
					}
				})
			})
		}
	}
}
