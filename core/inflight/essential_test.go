package inflight

import (
	"testing"

	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// TestEssentialScripts checks that an open breaker lets through the scripts that keep or
// take back a slot, and no others.
func TestEssentialScripts(t *testing.T) {
	t.Parallel()
	for s, want := range map[*script.Script]bool{
		acquireScript: false,
		restoreScript: false,
		renewScript:   true,
		releaseScript: true,
		countScript:   false,
	} {
		if (*wire.Script)(s).IsEssential() != want {
			t.Errorf("does %s pass an open breaker: got %v, want %v", s.Name(), !want, want)
		}
	}
}
