package limit_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestRestartBesideLoad kills a server that persists every answer, and starts it again
// while callers go on. None of their calls runs twice. What Redis did not decide is
// marked. Soon after Redis is back, it decides everything.
func TestRestartBesideLoad(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--appendonly", "yes", "--appendfsync", "always")
	l := must(limit.New(storetest.At(t, srv.Client(t), srv.Prefix(t)), "restart",
		[]limit.Policy{limit.FixedWindow{Limit: 1e9, Window: time.Hour}}, nil))(t)
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	const callers = 8
	var taken, unknown [callers]int64 // by each caller's own subject
	var degraded, back atomic.Int64
	var up atomic.Bool
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			pace := time.NewTicker(100 * time.Microsecond) // leaves the server some of the machine
			defer pace.Stop()
			for {
				select {
				case <-done:
					return
				case <-pace.C:
				}
				began := up.Load()
				d, err := l.Take(t.Context(), fmt.Sprint("s", i))
				switch {
				case err != nil || !d.Allowed:
					t.Errorf("a take by caller %d: got %+v, %v, want it allowed", i, d, err)
					return
				case !d.Degraded:
					taken[i]++
					if began {
						back.Add(1)
					}
				default:
					degraded.Add(1)
					if errors.Is(d.Cause, script.ErrMaybeExecuted) {
						unknown[i]++
					}
				}
			}
		})
	}
	for range 3 {
		before := l.Stats()
		redistest.Await(t, 10*time.Second, "decisions by Redis", func() bool { return l.Stats().Allowed > before.Allowed+200 })
		up.Store(false)
		srv.Stop(t)
		before = l.Stats()
		redistest.Await(t, 10*time.Second, "degraded decisions", func() bool { return l.Stats().Degraded > before.Degraded+200 })
		srv.Start(t)
		back.Store(0)
		up.Store(true)
		redistest.Await(t, 10*time.Second, "decisions by Redis again", func() bool { return back.Load() > 0 })
		redistest.Await(t, 10*time.Second, "the breaker to close", func() bool { return !l.Stats().Open })
	}
	close(done)
	wg.Wait()
	if s := l.Stats(); s.Degraded != uint64(degraded.Load()) {
		t.Errorf("after the restart: got stats %+v, want %d degraded", s, degraded.Load())
	}
	for i := range callers {
		var d limit.Decision
		redistest.Await(t, 10*time.Second, "a peek that Redis answers", func() (ok bool) {
			var err error
			d, err = l.Peek(t.Context(), fmt.Sprint("s", i))
			return err == nil && !d.Degraded
		})
		if used := d.Limit - d.Remaining; used < taken[i] || used > taken[i]+unknown[i] {
			t.Errorf("caller %d: got %d counted by Redis, want the %d taken and at most %d more",
				i, used, taken[i], unknown[i])
		}
	}
}
