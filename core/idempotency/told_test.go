package idempotency_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// traced is what a caller's context has for its observers.
type traced struct{}

// TestALossBesideDetach has the lease end between Begin and Detach: the loss is told
// with the values of Begin's context, and does not race with Detach.
func TestALossBesideDetach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &redistest.CutClient{Client: inBubble(t)}
		told := make(chan any, 1)
		observe := func(ctx context.Context, e store.Event) {
			if e.Outcome == store.Lost && e.Primitive == store.Guard {
				told <- ctx.Value(traced{})
			}
		}
		st := storetest.Open(t, rdb, store.Options{Observers: []store.Observer{observe}})
		g, err := idempotency.New(st, "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		run, err := g.Begin(context.WithValue(t.Context(), traced{}, "of Begin"), "key", "")
		if err != nil {
			t.Fatal(err)
		}
		rdb.Cut("refused")
		time.Sleep(idempotency.DefaultLease)
		run.Claim.Detach()
		if got := <-told; got != "of Begin" {
			t.Errorf("the context of the loss: got the value %v, want that of Begin's context", got)
		}
	})
}
