package line

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/limit/internal/cells"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/internal/redistest"
)

// late is by how much a call can be late.
const late = 50 * time.Millisecond

// limiter decides in process for those that wait.
type limiter struct {
	*Queues

	set   *kind.Set
	cells *cells.Cells
}

func newLimiter(rules ...*kind.Rule) *limiter {
	return &limiter{New(1000, new(atomic.Int64)), kind.NewSet(rules, false), cells.New(keyspace.Space{}, 100, false)}
}

// take asks for permits of the subject s.
func (l *limiter) take(cost int64) Answer {
	of := &kind.Request{Subject: "s", Cost: cost, Readings: make([]kind.Reading, len(l.set.Rules))}
	l.cells.Take(l.set, of, 0)
	v, figures := l.set.Judge(of.Readings, kind.Wants(cost), nil)
	return Answer{Allowed: v.Allowed, RetryAfter: figures[v.Binds].RetryAfter, Readings: of.Readings}
}

func rule(t *testing.T, name string, by kind.Algorithm, err error) *kind.Rule {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return kind.NewRule(name, name, by)
}

func bucket(t *testing.T) *kind.Rule {
	t.Helper()
	by, err := kind.Bucket{Rate: 2, Per: time.Second, Burst: 5}.New(false)
	return rule(t, "bucket", by, err)
}

func window(t *testing.T, length time.Duration) *kind.Rule {
	t.Helper()
	by, err := kind.NewWindow(5, length, 0)
	return rule(t, "window", by, err)
}

func perRequest(r *kind.Rule) *kind.Rule {
	r.Once = true
	return r
}

// denied returns which waiters behind the first cannot be served in time, by the model.
func (m modelQueue) denied() map[*Waiter]bool {
	denied, left := map[*Waiter]bool{}, slices.Clone(m)
	for _, w := range m[1:] {
		waits, late := time.Duration(0), time.Duration(0) // it waits since the first answer
		if w.known {
			waits, late = time.Since(w.began), w.late
		}
		told, rest := w.of.rest(w.set, left.before(w).Plus(kind.Wants(w.cost)), time.Now(), nil)
		if told.denied && w.most != nil && rest > *w.most-waits+late {
			denied[w] = true
			left = slices.DeleteFunc(left, func(other *Waiter) bool { return other == w })
		}
	}
	return denied
}

// TestADenialWakesThoseThatItDenies, and no other waiter: those that cannot be served in
// time any more, behind those that are left.
func TestADenialWakesThoseThatItDenies(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]*kind.Rule{
		"bucket": {bucket(t)},
		"window": {window(t, 3*time.Second)},
		"set":    {perRequest(window(t, 10*time.Second)), bucket(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rng := redistest.Rand(t)
				l := newLimiter(rules...)
				var m modelQueue
				for range 3 * someWaiters / 2 {
					var most *time.Duration
					if rng.IntN(4) > 0 {
						most = new(time.Duration(rng.IntN(1000)) * time.Second)
					}
					w, _ := l.Join(l.set, "s", 1+rng.Int64N(3), most, late, false)
					m = append(m, w)
				}
				of, first, denied := m[0].of, m[0], 0
				for round := range 4 { // others take what they wait for
					time.Sleep(time.Duration(round) * 10 * time.Second)
					l.take(5)
					a := l.take(5)
					if a.Allowed {
						t.Fatalf("got %+v, want a denial", a)
					}
					of.answered(first, a, nil, of.freed)
					want := m.denied()
					denied += len(want)
					of.look(time.Second)
					for i, w := range m[1:] {
						if got := w.denial != nil; got != want[w] || len(w.news) > 0 != want[w] {
							t.Fatalf("round %d, waiter %d: got it denied: %t, and %d signals, want %t", round, i+1, got, len(w.news), want[w])
						}
					}
					for w := range want {
						l.Leave(w)
					}
					m = slices.DeleteFunc(m, func(w *Waiter) bool { return want[w] })
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
	for name, between := range map[string]func(l *limiter, m modelQueue) modelQueue{
		"denied": func(l *limiter, m modelQueue) modelQueue {
			time.Sleep(20 * time.Second)
			l.take(5)
			m[0].of.answered(m[0], l.take(1), nil, 0)
			return m
		},
		"left": func(l *limiter, m modelQueue) modelQueue {
			for _, w := range m[1 : 2*someWaiters] {
				l.Leave(w)
			}
			return slices.Delete(m, 1, 2*someWaiters)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rng := redistest.Rand(t)
				l := newLimiter(bucket(t))
				var m modelQueue
				for i := range 5 * someWaiters / 2 {
					most := time.Duration(rng.IntN(1000)) * time.Second
					if i == 5*someWaiters/2-1 {
						most = time.Millisecond // one at least is to be denied
					}
					w, _ := l.Join(l.set, "s", 1, &most, late, false)
					m = append(m, w)
				}
				l.take(5)
				of := m[0].of
				of.answered(m[0], l.take(1), nil, 0)
				if !of.lookAtSome() {
					t.Error("after one look: got all looked at, want more to look at")
				}
				m = between(l, m)
				m = slices.DeleteFunc(m, func(w *Waiter) bool { return w.denial != nil })
				denied := m.denied()
				if len(denied) == 0 {
					t.Error("got none to be denied, want some")
				}
				of.look(time.Second)
				for w := range denied {
					if w.denial == nil {
						t.Errorf("the waiter at %d, with %+v ahead and for %v: got it waiting on, want it denied", w.at, m.before(w), *w.most)
					}
				}
			})
		})
	}
}

// TestWaitersOfOneSubjectDoNotHoldUpAnother, nor a change of it: each has a lock of its own.
func TestWaitersOfOneSubjectDoNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	l := newLimiter(bucket(t))
	busy, _ := l.Join(l.set, "busy", 1, nil, late, false)
	busy.of.mu.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w, _ := l.Join(l.set, "free", 1, new(time.Minute), late, false)
		defer l.Leave(w)
		denial, err := w.Wait(t.Context(), func() (Answer, error) { return Answer{Allowed: true}, nil })
		if err != nil || denial != nil {
			t.Errorf("a free subject: got %+v, %v, want it granted", denial, err)
		}
		l.Changed("free")
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("while another subject's queue is locked: got a free subject still waiting after a minute, want it served")
	}
	busy.of.mu.Unlock()
	<-done
	l.Leave(busy)
	if n := len(l.bySubject); n != 0 {
		t.Errorf("when nobody waits: got %d queues, want none", n)
	}
}

// TestAnOldDenialIsIgnored: one that was asked for before permits were given back, and arrives after
// that.
func TestAnOldDenialIsIgnored(t *testing.T) {
	t.Parallel()
	l := newLimiter(bucket(t))
	w, _ := l.Join(l.set, "s", 1, nil, late, false)
	before := w.of.freed
	l.Changed("s")
	w.of.answered(w, Answer{}, nil, before)
	if w.of.last != nil {
		t.Errorf("an old denial: got %+v stored, want it ignored", w.of.last)
	}
	w.of.answered(w, Answer{}, nil, w.of.freed)
	if w.of.last == nil {
		t.Error("the next denial: got it ignored too, want it stored")
	}
}
