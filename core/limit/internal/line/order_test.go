package line

import (
	"slices"
	"testing"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/internal/redistest"
)

// modelQueue is a queue as a slice: what is ahead of a waiter is counted each time.
type modelQueue []*Waiter

func (m modelQueue) before(w *Waiter) (ahead kind.Wanted) {
	for _, other := range m {
		if other == w {
			break
		}
		ahead.Permits += other.cost
		ahead.Requests += min(other.cost, 1)
	}
	return ahead
}

// TestOrderIsThatOfASlice compares an order with the model, while waiters come, leave, and
// count no more.
func TestOrderIsThatOfASlice(t *testing.T) {
	t.Parallel()
	rng := redistest.Rand(t)
	compacted, longest := 0, 0
	for range 20 {
		var o order
		var m modelQueue
		grows := 1 + rng.IntN(4)
		for range 1000 {
			switch drawn := rng.IntN(6); {
			case drawn < grows || len(m) == 0:
				w := &Waiter{cost: int64(rng.IntN(4))}
				o.add(w)
				m = append(m, w)
			case drawn == 5:
				o.clear(m[rng.IntN(len(m))])
			default:
				at := rng.IntN(len(m))
				if rng.IntN(2) == 0 {
					at = 0
				}
				if o.remove(m[at]) {
					compacted++
				}
				m = slices.Delete(m, at, at+1)
			}
			longest = max(longest, len(m))
			if o.left != len(m) || len(m) > 0 && o.first() != m[0] {
				t.Fatalf("got %d waiters, the first %p, want those of %v", o.left, o.first(), m)
			}
			for i := range min(3, len(m)) {
				w := m[[]int{0, len(m) - 1, rng.IntN(len(m))}[i]]
				if got, want := o.before(w.at), m.before(w); got != want || o.waiters[w.at] != w {
					t.Fatalf("before a waiter at %d: got %+v, want %+v", w.at, got, want)
				}
			}
			if len(o.waiters) > 2*o.left+64 {
				t.Fatalf("got room for %d waiters, want at most 64 more than twice the %d that are left", len(o.waiters), o.left)
			}
		}
	}
	if compacted < 20 || longest < 100 {
		t.Errorf("got %d orders made compact, and %d waiters at most: want at least 20, and 100", compacted, longest)
	}
}
