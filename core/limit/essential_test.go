package limit

import (
	"testing"

	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// TestWhatPassesAnOpenBreaker: only the scripts that keep, conclude or take back what was
// granted do.
func TestWhatPassesAnOpenBreaker(t *testing.T) {
	t.Parallel()
	for s, want := range map[*script.Script]bool{
		setScript:    false,
		settleScript: false,
		resetScript:  false,

		concludeScript:       true,
		renewEstimatesScript: true,
	} {
		if (*wire.Script)(s).IsEssential() != want {
			t.Errorf("does %s pass an open breaker: got %v, want %v", s.Name(), !want, want)
		}
	}
}
