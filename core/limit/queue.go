package limit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// queues are the callers that wait, of a limiter and of all that With made from it. Those
// of one subject under the same policies are in one queue, and only the first of them asks
// Redis.
type queues struct {
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
	last  *timedDecision // what Redis last answered to one of them; nil if it has not answered yet
	freed int            // counts how often this process gave permits back

	// After an answer by which waiters may have to wait longer, each of them is looked at
	// once, in their order: next is the first that was not looked at. If there is another
	// such answer meanwhile, again is true.
	next  int
	again bool
}

type waiter struct {
	of   *queue
	l    *Limiter
	news chan struct{} // signals that the waiter is now the first, was denied, or is to ask again

	// The lock of the queue guards these.
	at      int            // the index in its order
	cost    int64          // 0 after it was granted or denied
	asks    int64          // the cost that it asked for
	most    *time.Duration // how long it waits at most; nil if without a limit
	began   time.Time      // when it came, or the first answer in its queue, if that was later
	known   bool           // there was such an answer
	refusal *Decision      // not nil after it was denied
}

func newQueues(most int, waiting *atomic.Int64) *queues {
	return &queues{most: int64(most), waiting: waiting, bySubject: make(map[string][]*queue)}
}

// join returns nil if MaxWaiting callers wait already. queued reports whether others wait
// for the subject under the same policies.
func (l *Limiter) join(subject string, cost int64, most *time.Duration) (w *waiter, queued bool) {
	q, full := l.queues.enter(subject, l.signature)
	if full {
		return nil, q != nil
	}
	w = &waiter{of: q, l: l, cost: cost, asks: cost, most: most, began: time.Now(), news: make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == len(q.order.waiters) {
		q.next++ // it makes its own forecast
	}
	q.order.add(w)
	return w, q.order.left > 1
}

// enter returns the queue of a subject and policies. If all queues are full, it makes none.
func (all *queues) enter(subject, signature string) (q *queue, full bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	of := all.bySubject[subject]
	if i := slices.IndexFunc(of, func(q *queue) bool { return q.signature == signature }); i >= 0 {
		q = of[i]
	}
	if all.waiting.Add(1) > all.most {
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

func (all *queues) leave(w *waiter) {
	q := w.of
	q.remove(w)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.waiting.Add(-1)
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

// changed makes the first waiters of a subject ask again, because permits were given back.
// They may wait under other policies, and then ask in vain.
func (all *queues) changed(subject string) {
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

func (q *queue) remove(w *waiter) {
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
		q.order.first().hear()
	}
}

// answered stores how a waiter's request was decided. If permits were given back since the
// request was sent, a denial is not stored, because it may be over.
func (q *queue) answered(w *waiter, d *Decision, err error, freed int) {
	if err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !d.Allowed && q.freed != freed {
		return
	}
	news := q.last == nil || !d.Allowed // others may have to wait longer than they expected
	q.last = &timedDecision{*d, time.Now()}
	if d.Allowed {
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

func (w *waiter) hear() {
	select {
	case w.news <- struct{}{}:
	default: // it has not read the last signal yet
	}
}

// sleep waits until there is news, but no longer than d.
func (w *waiter) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.news:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
