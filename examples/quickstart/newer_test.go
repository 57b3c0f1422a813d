package main

import (
	"strings"
	"testing"

	"github.com/neap-go/neap/examples/internal/quickstart"
)

// TestWithoutTheNewerProgram: where it cannot be built, a demo of all frameworks does
// not begin, and one of the others needs it not.
func TestWithoutTheNewerProgram(t *testing.T) {
	t.Setenv("PATH", "")
	for module, says := range map[string]string{newerModule(): "executable file not found", t.TempDir(): "not there", "": "not there"} {
		lone := quickstart.Quickstart{Frameworks: frameworks, Build: newer(module)}
		for _, args := range [][]string{nil, {"-framework", "fiber3"}, {"-serve", "-framework", "echo5"}} {
			var stdout, stderr strings.Builder
			code := lone.Run(t.Context(), args, &stdout, &stderr)
			if code != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), says) ||
				!strings.Contains(stderr.String(), "go run ./examples/quickstart") {
				t.Errorf("%q: got the exit status %d and %s%s, want 1, nothing shown, and %q with the remedy",
					args, code, stdout.String(), stderr.String(), says)
			}
		}
	}
}
