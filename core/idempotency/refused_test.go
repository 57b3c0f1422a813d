package idempotency_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// TestAConclusionThatIsRefusedForLongerThanALease: an operator takes rights from the user,
// for hours. The conclusion is given up and counted, and the lease ends the run.
func TestAConclusionThatIsRefusedForLongerThanALease(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]idempotency.Outcome{
		"done": idempotency.DoneWith([]byte("paid")), "nothing done": idempotency.NothingDone(), "unknown": idempotency.Unknown(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb := &redistest.CutClient{Client: inBubble(t)}
				g := guard(t, rdb, "neap", &idempotency.Options{Lease: time.Minute})
				c := begin(t, g, "key", "")
				rdb.Cut("forbidden")
				if err := c.Conclude(t.Context(), outcome); !errors.Is(err, script.ErrConfiguration) {
					t.Errorf("without rights: got %v, want %v", err, script.ErrConfiguration)
				}
				time.Sleep(10 * time.Minute)
				if got := g.Stats(); got.Dropped != 1 || got.Concluding+got.Undoing != 0 {
					t.Errorf("ten minutes later: got stats %+v, want one conclusion dropped and none that goes on", got)
				}
				rdb.Mend()
				if again := begin(t, g, "key", ""); again.Attempt() != 2 {
					t.Errorf("with rights: got attempt %d, want the second", again.Attempt())
				}
			})
		})
	}
}
