package redistest

import (
	"sync/atomic"
	"testing"
	"time"
)

// Grace is how much longer than its budget a call of a store's queue may take while the
// process is short of CPU: a test that bounds the time of a call adds it.
const Grace = time.Second

// Witness looks on until the test ends, and tells how long the machine stood
// still at the most: what a test that bounds a time adds to its bound.
func Witness(tb testing.TB) func() time.Duration {
	var most atomic.Int64
	done := make(chan struct{})
	tb.Cleanup(func() { close(done) })
	go func() {
		for {
			before := time.Now()
			select {
			case <-time.After(time.Millisecond):
				most.Store(max(most.Load(), int64(time.Since(before)-time.Millisecond)))
			case <-done:
				return
			}
		}
	}()
	return func() time.Duration { return time.Duration(most.Load()) }
}
