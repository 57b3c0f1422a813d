package store_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/store"
)

// TestSlotsAreReadAgain while calls fail: twice a second for a minute, and then every
// five seconds. One failed call does not cause it.
func TestSlotsAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		failed := store.Reloader(func(context.Context) error { reads++; return nil })
		since := time.Now()
		failed(since, 1)
		synctest.Wait()
		if reads != 0 {
			t.Errorf("after one failure: got the slots read %d times, want none", reads)
		}
		fail := func(d time.Duration) int {
			before := reads
			for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
				failed(since, 2)
				synctest.Wait()
			}
			return reads - before
		}
		if n := fail(50 * time.Second); n < 100 || n > 112 {
			t.Errorf("after fifty seconds of failures: got the slots read %d times, want about 100", n)
		}
		time.Sleep(time.Minute)
		if n := fail(60 * time.Second); n < 12 || n > 15 {
			t.Errorf("a minute of failures later: got the slots read %d times, want about 12", n)
		}
	})
}

// TestAReadThatHangsHoldsUpNoOther. At most three run at once.
func TestAReadThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		failed := store.Reloader(func(ctx context.Context) error { reads++; <-ctx.Done(); return ctx.Err() })
		since := time.Now()
		for range 450 { // 4.5 s, and a read may take 5
			failed(since, 2)
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
		}
		if reads != 3 {
			t.Errorf("while reads hang: got %d at once, want 3", reads)
		}
		time.Sleep(10 * time.Second)
		failed(since, 2)
		synctest.Wait()
		if reads != 4 {
			t.Errorf("after these have ended: got %d reads, want one more", reads)
		}
		time.Sleep(10 * time.Second)
	})
}
