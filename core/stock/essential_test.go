package stock

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
		openScript:    false,
		reserveScript: false,
		confirmScript: true,
		renewScript:   true,
		cancelScript:  true,
		sweepScript:   true,
		restockScript: false,
		leftScript:    false,
		buyersScript:  false,
		forgetScript:  false,
	} {
		if (*wire.Script)(s).IsEssential() != want {
			t.Errorf("%s passes an open breaker: %v, want %v", s.Name(), !want, want)
		}
	}
}
