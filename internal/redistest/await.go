package redistest

import (
	"testing"
	"time"
)

// Await waits until cond is true, and fails the test when it is not within
// bound: "redistest: waited 5s for " + what.
func Await(tb testing.TB, bound time.Duration, what string, cond func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(bound); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("redistest: waited %v for %s", bound, what)
		}
	}
}
