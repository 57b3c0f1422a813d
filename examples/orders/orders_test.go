package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestPlay runs the program, which finds out by itself whether all is well.
func TestPlay(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "orders")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: got %v, want no error\n%s", err, out)
	}
	admin := redistest.Standalone(t)
	for where, args := range map[string][]string{
		"embedded":   nil,
		"standalone": {"-redis", admin.AdminURL()},
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
			if err != nil {
				t.Errorf("the program ended with %v, want no error:\n%s", err, out)
			}
			for _, part := range []string{"no answer: signal: killed\n", "replayed: false\n", "replayed: true\n", ": booked once, "} {
				if strings.Count(string(out), part) != 2 { // on each framework
					t.Errorf("the program said %q %d times, want twice in:\n%s",
						part, strings.Count(string(out), part), out)
				}
			}
		})
	}
}
