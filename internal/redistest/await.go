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

// Settled returns count's value once it has stopped changing.
func Settled(count func() int) int {
	last := count()
	for same := 0; same < 20; {
		<-time.After(5 * time.Millisecond)
		if now := count(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return last
}
