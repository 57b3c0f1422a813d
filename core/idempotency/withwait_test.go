package idempotency_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// TestWithWait: the Guard waits for as long as it was told, and shares records, counts
// and claims.
func TestWithWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, inBubble(t), "p", &idempotency.Options{Wait: time.Minute})
		const wait = 70 * time.Millisecond
		waiting, err := g.WithWait(wait)
		if err != nil {
			t.Fatal(err)
		}
		claim := begin(t, g, "key", "")
		if !claim.By(waiting) || !claim.By(g) || claim.By(nil) {
			t.Error("claim.By: got another answer, want true for the guard and those made of it, and false for nil")
		}
		for of, want := range map[*idempotency.Guard]time.Duration{g: time.Minute, waiting: wait} {
			began := time.Now()
			if _, err := of.Await(t.Context(), "key", ""); !errors.Is(err, idempotency.ErrInFlight) || time.Since(began) != want {
				t.Errorf("got %v after %v, want ErrInFlight after %v", err, time.Since(began), want)
			}
		}
		if err := claim.Conclude(t.Context(), idempotency.DoneWith([]byte("result"))); err != nil {
			t.Error(err)
		}
		replayed(t, waiting, "key", "", "result")
		if s := g.Stats(); s != waiting.Stats() || s.InFlight != 2 || s.Replayed != 1 {
			t.Errorf("got %+v and %+v, want what both did", s, waiting.Stats())
		}
	})
}

func TestBadWithWait(t *testing.T) {
	t.Parallel()
	g := guard(t, redistest.Embedded(), "p", nil)
	for _, wait := range []time.Duration{math.MinInt64, -1, 0, time.Millisecond - 1, 24*time.Hour + 1} {
		if other, err := g.WithWait(wait); other != nil || err == nil || !strings.Contains(err.Error(), "use 1ms to 24h0m0s") {
			t.Errorf("%v: got %v, %v, want the range", wait, other, err)
		}
	}
}
