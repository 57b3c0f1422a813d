package lock

import (
	"testing"

	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// TestEssentialScripts checks that an open breaker lets through the scripts that keep,
// conclude or take back a grant, and no others.
func TestEssentialScripts(t *testing.T) {
	t.Parallel()
	for s, want := range map[*script.Script]bool{
		acquireScript: false,
		extendScript:  true,
		releaseScript: true,
		forceScript:   true,
		inspectScript: false,
		leaveScript:   false,
		startScript:   false,
		endScript:     true,
	} {
		if (*wire.Script)(s).IsEssential() != want {
			t.Errorf("%s passes an open breaker: %v, want %v", s.Name(), !want, want)
		}
	}
}
