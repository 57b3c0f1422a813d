package idempotency_test

import (
	"testing"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestABrokenRecordIsNoOutage of a claim, nor of a result.
func TestABrokenRecordIsNoOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	for name, completes := range map[string]bool{"claim": false, "result": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := redistest.Prefix(t)
			g := guard(t, srv.Client(t), prefix, &idempotency.Options{})
			storetest.Spoil(t, srv.Admin(t), prefix, func() []func() error {
				run, err := g.Begin(t.Context(), "key", "p")
				if err == nil && completes {
					err = run.Claim.Conclude(t.Context(), idempotency.DoneWith([]byte("x")))
				}
				if err != nil {
					t.Fatal(err)
				}
				return []func() error{
					func() error { _, err := g.Begin(t.Context(), "key", "p"); return err },
					func() error { _, err := g.Inspect(t.Context(), "key"); return err },
					func() error { return run.Claim.Renew(t.Context()) },
					func() error { return run.Claim.Conclude(t.Context(), idempotency.DoneWith([]byte("x"))) },
					func() error { return run.Claim.Conclude(t.Context(), idempotency.NothingDone()) },
				}
			})
		})
	}
}
