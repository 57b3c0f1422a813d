package lock

import (
	"fmt"
	"slices"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

// TestRowsAreThoseOfASlice compares the rows of a key with a slice, while callers of
// several owners join and leave.
func TestRowsAreThoseOfASlice(t *testing.T) {
	t.Parallel()
	rng := redistest.Rand(t)
	var e entry
	var m []*waiter
	first := func(is func(w *waiter) bool) *waiter {
		if at := slices.IndexFunc(m, is); at >= 0 {
			return m[at]
		}
		return nil
	}
	for step := range 5000 {
		if step/500%2 == 0 && rng.IntN(3) > 0 || len(m) == 0 {
			w := &waiter{queue: []string{"", "", "a", "b", fmt.Sprint(rng.IntN(100))}[rng.IntN(5)]}
			e.add(w)
			m = append(m, w)
		} else {
			at := rng.IntN(len(m)) / (1 + rng.IntN(len(m)))
			e.remove(m[at])
			m = slices.Delete(m, at, at+1)
		}
		queues := map[string]bool{"": true, "a": true, "b": true}
		for _, w := range m {
			queues[w.queue] = true
		}
		for queue := range queues {
			if got, want := e.first(queue), first(func(w *waiter) bool { return w.queue == queue }); got != want {
				t.Fatalf("step %d, queue %q: got the first %p, want %p", step, queue, got, want)
			}
		}
		if want := first(func(*waiter) bool { return true }); e.waiting.n != len(m) || e.waiting.first != want {
			t.Fatalf("step %d: got %d waiters and the first %p, want %d and %p", step, e.waiting.n, e.waiting.first, len(m), want)
		}
		if len(e.named) > len(queues)-1 {
			t.Fatalf("step %d: got rows of %d queues, want none without a waiter, of %d", step, len(e.named), len(queues)-1)
		}
	}
}
