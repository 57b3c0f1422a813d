package limit

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// modelQueue is a queue as a slice: what is ahead of a waiter is counted each time.
type modelQueue []*waiter

func (m modelQueue) before(w *waiter) (ahead wanted) {
	for _, other := range m {
		if other == w {
			break
		}
		ahead.permits += other.cost
		ahead.requests += min(other.cost, 1)
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
				w := &waiter{cost: int64(rng.IntN(4))}
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

// denied returns which waiters behind the first cannot be served in time, by the model.
func (m modelQueue) denied(l *Limiter) map[*waiter]bool {
	denied, left := map[*waiter]bool{}, slices.Clone(m)
	for _, w := range m[1:] {
		waits, late := time.Duration(0), time.Duration(0) // it waits since the first answer
		if w.known {
			waits, late = time.Since(w.began), l.opts.Budget
		}
		var d Decision
		rest, is := w.of.rest(l, &d, left.before(w).plus(aRequest(w.cost)), time.Now())
		if is && w.most != nil && rest > *w.most-waits+late {
			denied[w] = true
			left = slices.DeleteFunc(left, func(other *waiter) bool { return other == w })
		}
	}
	return denied
}

// TestADenialWakesThoseThatItDenies, and no other waiter: those that cannot be served in
// time any more, behind those that are left.
func TestADenialWakesThoseThatItDenies(t *testing.T) {
	t.Parallel()
	for name, policies := range map[string][]Policy{
		"bucket": {TokenBucket{Rate: 2, Per: time.Second, Burst: 5}},
		"window": {FixedWindow{Limit: 5, Window: 3 * time.Second}},
		"set":    {PerRequest(FixedWindow{Limit: 5, Window: 10 * time.Second}), TokenBucket{Rate: 2, Per: time.Second, Burst: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rng := redistest.Rand(t)
				l := newTestLocal(t, nil, policies...)
				var m modelQueue
				for range 3 * someWaiters / 2 {
					var most *time.Duration
					if rng.IntN(4) > 0 {
						most = new(time.Duration(rng.IntN(1000)) * time.Second)
					}
					w, _ := l.join("s", 1+rng.Int64N(3), most)
					m = append(m, w)
				}
				of, first, denied := m[0].of, m[0], 0
				for round := range 4 { // others take what they wait for
					time.Sleep(time.Duration(round) * 10 * time.Second)
					must(l.TakeN(t.Context(), "s", 5))(t)
					d, _, err := l.ask(t.Context(), "s", 5, false)
					if err != nil || d.Allowed {
						t.Fatalf("got %+v, %v, want a denial", d, err)
					}
					of.answered(first, &d, err, of.freed)
					want := m.denied(l)
					denied += len(want)
					of.look(time.Second)
					for i, w := range m[1:] {
						if got := w.refusal != nil; got != want[w] || len(w.news) > 0 != want[w] {
							t.Fatalf("round %d, waiter %d: got it denied: %t, and %d signals, want %t", round, i+1, got, len(w.news), want[w])
						}
					}
					for w := range want {
						l.queues.leave(w)
					}
					m = slices.DeleteFunc(m, func(w *waiter) bool { return want[w] })
				}
				if denied < 10 || len(m) < 10 {
					t.Errorf("got %d denied and %d left, want at least 10 of each", denied, len(m))
				}
			})
		})
	}
}

// TestADenialBetweenTwoLooks: those that were looked at are looked at again. So are all
// after many have left meanwhile.
func TestADenialBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(t *testing.T, l *Limiter, m modelQueue) modelQueue{
		"denied": func(t *testing.T, l *Limiter, m modelQueue) modelQueue {
			t.Helper()
			time.Sleep(20 * time.Second)
			must(l.TakeN(t.Context(), "s", 5))(t)
			d := must(l.Peek(t.Context(), "s"))(t)
			m[0].of.answered(m[0], &d, nil, 0)
			return m
		},
		"left": func(_ *testing.T, l *Limiter, m modelQueue) modelQueue {
			for _, w := range m[1 : 2*someWaiters] {
				l.queues.leave(w)
			}
			return slices.Delete(m, 1, 2*someWaiters)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rng := redistest.Rand(t)
				l := newTestLocal(t, nil, TokenBucket{Rate: 2, Per: time.Second, Burst: 5})
				var m modelQueue
				for range 5 * someWaiters / 2 {
					w, _ := l.join("s", 1, new(time.Duration(rng.IntN(1000))*time.Second))
					m = append(m, w)
				}
				must(l.TakeN(t.Context(), "s", 5))(t)
				d := must(l.Peek(t.Context(), "s"))(t)
				of := m[0].of
				of.answered(m[0], &d, nil, 0)
				if !of.lookAtSome() {
					t.Error("after one look: got all looked at, want more to look at")
				}
				m = between(t, l, m)
				m = slices.DeleteFunc(m, func(w *waiter) bool { return w.refusal != nil })
				late := m.denied(l)
				if len(late) == 0 {
					t.Error("got none to be denied, want some")
				}
				of.look(time.Second)
				for w := range late {
					if w.refusal == nil {
						t.Errorf("the waiter at %d, with %+v ahead and for %v: got it waiting on, want it denied", w.at, m.before(w), *w.most)
					}
				}
			})
		})
	}
}
