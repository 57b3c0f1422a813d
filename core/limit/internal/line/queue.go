// Package line has the callers that wait for permits. Those of one subject under the same policies
// stand in one queue, and only the first of them asks Redis.
package line

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Queues are the callers that wait, of a limiter and of all that With made from it.
type Queues struct {
	most    int64
	waiting *atomic.Int64

	mu        sync.Mutex // held for a look-up only; each queue has a lock of its own
	bySubject map[string][]*queue
}

// queue is the callers that wait for one subject under the same policies.
type queue struct {
	subject, signature string

	callers int // that are in the queue, join it or leave it; guarded by the lock of the queues

	mu    sync.Mutex
	order order
	last  *timedAnswer // what Redis last answered to one of them; nil if it has not answered yet
	freed int          // counts how often this process gave permits back

	// After an answer by which waiters may have to wait longer, each of them is looked at
	// once, in their order: next is the first that was not looked at. If there is another
	// such answer meanwhile, again is true.
	next  int
	again bool
}

// Waiter is a caller that waits.
type Waiter struct {
	of   *queue
	set  *kind.Set
	late time.Duration // clocks and scheduling can delay it by up to this
	news chan struct{} // signals that the waiter is now the first, was denied, or is to ask again

	// The lock of the queue guards these.
	at     int            // the index in its order
	cost   int64          // 0 after it was granted or denied
	asks   int64          // the cost that it asked for
	most   *time.Duration // how long it waits at most; nil if without a limit
	began  time.Time      // when it came, or the first answer in its queue, if that was later
	known  bool           // there was such an answer
	denial *Denial        // not nil after it was denied
}

// New returns queues for so many callers. It counts them in waiting.
func New(most int, waiting *atomic.Int64) *Queues {
	return &Queues{most: int64(most), waiting: waiting, bySubject: make(map[string][]*queue)}
}

// Join has a caller wait for a cost, for most at most, or without a limit if most is nil. Each of its
// calls can be late by so much. Join returns nil if all queues are full, unless the caller has room
// since an earlier Join. queued reports whether others wait for the subject under the same policies.
func (all *Queues) Join(set *kind.Set, subject string, cost int64, most *time.Duration, late time.Duration, room bool) (w *Waiter, queued bool) {
	q, full := all.enter(subject, set.Signature, room)
	if full {
		return nil, q != nil
	}
	w = &Waiter{of: q, set: set, late: late, cost: cost, asks: cost, most: most, began: time.Now(), news: make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == len(q.order.waiters) {
		q.next++ // it makes its own forecast
	}
	q.order.add(w)
	return w, q.order.left > 1
}

// enter returns the queue of a subject and policies. If all queues are full, it makes none.
func (all *Queues) enter(subject, signature string, room bool) (q *queue, full bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	of := all.bySubject[subject]
	if i := slices.IndexFunc(of, func(q *queue) bool { return q.signature == signature }); i >= 0 {
		q = of[i]
	}
	if !room && all.waiting.Add(1) > all.most {
		all.waiting.Add(-1)
		return q, true
	}
	if q == nil {
		q = &queue{subject: subject, signature: signature}
		all.bySubject[subject] = append(of, q)
	}
	q.callers++
	return q, false
}

// Leave takes a caller out of its queue. It has its room until Free.
func (all *Queues) Leave(w *Waiter) {
	q := w.of
	q.remove(w)
	all.mu.Lock()
	defer all.mu.Unlock()
	if q.callers--; q.callers > 0 {
		return
	}
	of := all.bySubject[q.subject]
	if len(of) == 1 {
		delete(all.bySubject, q.subject)
	} else {
		all.bySubject[q.subject] = slices.DeleteFunc(of, func(other *queue) bool { return other == q })
	}
}

// Free gives the room of a caller to others.
func (all *Queues) Free() { all.waiting.Add(-1) }

// Changed makes the first waiters of a subject ask again, because permits were given back.
// They may wait under other policies, and then ask in vain.
func (all *Queues) Changed(subject string) {
	all.mu.Lock()
	of := slices.Clone(all.bySubject[subject])
	all.mu.Unlock()
	for _, q := range of {
		q.changed()
	}
}

func (q *queue) changed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = nil
	q.freed++
	if first := q.order.first(); first != nil {
		first.hear()
	}
}

func (q *queue) remove(w *Waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first, pending := q.order.first(), q.pending()
	if q.order.remove(w) {
		q.next, q.again = len(q.order.waiters), false
		if pending {
			q.lookAgain()
		}
	}
	if first == w && q.order.left > 0 {
		if q.last != nil && !q.last.Allowed && w.set.Entries { // it tells when w would have been granted, and not when others are
			q.last = nil
		}
		q.order.first().hear()
	}
}

// answered stores how a waiter's request was decided. If permits were given back since the
// request was sent, a denial is not stored, because it may be over.
func (q *queue) answered(w *Waiter, a Answer, err error, freed int) {
	if err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !a.Allowed && q.freed != freed {
		return
	}
	news := q.last == nil || !a.Allowed // others may have to wait longer than they expected
	q.last = &timedAnswer{a, time.Now()}
	if a.Allowed {
		q.order.clear(w)
	}
	if !news {
		return
	}
	q.lookAgain()
	if first := q.order.first(); first != w {
		first.hear()
	}
}
