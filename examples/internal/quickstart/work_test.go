package quickstart

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
)

// TestALostLockEndsTheRequest: the work ends with the context of the lock.
func TestALostLockEndsTheRequest(t *testing.T) {
	t.Parallel()
	l, err := lock.New(embedded(t), "exclusive", &lock.Options{Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	held, err := l.Try(t.Context(), "17")
	if err != nil {
		t.Fatal(err)
	}
	ctx := held.Context()
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	a := takeTurn(ctx, Asked{Query: "ms=10000"})
	if a.Status != 503 || a.ContentType != contentType || time.Since(began) > longest/2 {
		t.Errorf("got %+v after %v, want 503 as soon as the lock is lost", a, time.Since(began))
	}
}

// TestALostClaimEndsTheOrder: the work ends with the context of the claim.
func TestALostClaimEndsTheOrder(t *testing.T) {
	t.Parallel()
	g, err := idempotency.New(embedded(t), "orders", idempotency.Retry{}, &idempotency.Options{Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	run, err := g.Begin(t.Context(), "1", "")
	if err != nil {
		t.Fatal(err)
	}
	claim := run.Claim
	ctx := claim.Context()
	if err := claim.Conclude(t.Context(), idempotency.NothingDone()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	order := Asked{Query: "ms=10000", Body: func() ([]byte, error) { return []byte(`{"item":"tea"}`), nil }}
	if a := book(ctx, order); a.Status != 503 || time.Since(began) > longest/2 {
		t.Errorf("got %+v after %v, want 503 as soon as the claim is lost", a, time.Since(began))
	}
}
