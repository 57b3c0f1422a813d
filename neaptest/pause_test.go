package neaptest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/lock"
)

// TestPause holds a process for longer than its lease: another takes the lock, and what the
// first had sent changes nothing.
func TestPause(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		here, there := r.Client(), r.Client()
		held, err := locker(t, here, 3*time.Second).Try(t.Context(), "order-17")
		if err != nil {
			t.Fatal(err)
		}
		other := locker(t, there, 3*time.Second)
		time.Sleep(time.Minute)
		if _, err := other.Try(t.Context(), "order-17"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("while it is renewed: got %v, want ErrHeld", err)
		}
		r.Pause(here)
		time.Sleep(4 * time.Second)
		taken, err := other.Try(t.Context(), "order-17")
		if err != nil || taken.Fence() <= held.Fence() {
			t.Fatalf("after its lease: got the fence %d, %v, want one above %d", taken.Fence(), err, held.Fence())
		}
		if held.Err() == nil {
			t.Error("the paused holder has no error, want one")
		}
		r.Restore()
		time.Sleep(time.Minute)
		if err := taken.Err(); err != nil {
			t.Errorf("the new holder: got %v when the other resumed, want no error", err)
		}
	})
}

// TestPauseHoldsWhatIsWritten runs a call whose caller has given up.
func TestPauseHoldsWhatIsWritten(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		here, there := r.Client(), r.Client()
		here.Set(t.Context(), "k", "before", 0)
		r.Pause(here)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		long := strings.Repeat("after", 10_000)
		if err := here.Set(ctx, "k", long, 0).Err(); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
			t.Errorf("got %v, want that it took too long", err)
		}
		if got := get(t, there, "k"); got != "before" {
			t.Errorf("while the process is paused: got %q, want before", got)
		}
		r.Restore()
		synctest.Wait()
		if got := get(t, there, "k"); got != long {
			t.Errorf("when it has resumed: got %d bytes, want %d", len(got), len(long))
		}
	})
}

// TestPauseHoldsReplies pauses a process while the reply is on its way.
func TestPauseHoldsReplies(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		rdb.Set(t.Context(), "k", "v", 0)
		r.Slow(time.Second)
		began := time.Now()
		var call sync.WaitGroup
		call.Go(func() {
			const want = 2*time.Second + time.Millisecond
			if got := get(t, rdb, "k"); got != "v" || time.Since(began) != want {
				t.Errorf("got %q after %v, want v after %v, when the process resumes", got, time.Since(began), want)
			}
		})
		time.Sleep(time.Millisecond)
		r.Pause(rdb)
		time.Sleep(2 * time.Second)
		r.Restore()
		call.Wait()
	})
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
