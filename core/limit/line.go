package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// queues are the callers that wait, by subject. Only the first caller of each subject
// asks Redis.
type queues struct {
	most int64
	all  *atomic.Int64 // callers in the queues of a limiter and of all that With made from it

	mu    sync.Mutex // held for a look-up only; each line has a lock of its own
	lines map[string]*line
}

// line is the queue of a subject.
type line struct {
	subject string
	callers int // that are in the line, join it or leave it; guarded by the lock of queues

	mu    sync.Mutex
	order order
	seen  *sight // what Redis last answered to one of them; nil if it has not answered yet
	freed int    // counts how often this process gave permits back

	// After an answer by which waiters may have to wait longer, each of them is looked at
	// once, in their order: next is the first that was not looked at. If there is another
	// such answer meanwhile, again is true.
	next  int
	again bool
}

type waiter struct {
	of   *line
	news chan struct{} // signals that the waiter is now the first, was denied, or is to ask again

	// The lock of the line guards these.
	at      int            // the index in its order
	cost    int64          // 0 after it was granted or denied
	asks    int64          // the cost that it asked for
	most    *time.Duration // how long it waits at most; nil if without a limit
	began   time.Time      // when it came, or the first answer in its line, if that was later
	known   bool           // there was such an answer
	refusal *Decision      // not nil after it was denied
}

func newQueues(most int, all *atomic.Int64) *queues {
	return &queues{most: int64(most), all: all, lines: make(map[string]*line)}
}

// join returns nil if MaxWaiting callers wait already. queued reports whether others wait
// for the subject.
func (q *queues) join(subject string, cost int64, most *time.Duration) (w *waiter, queued bool) {
	l, full := q.enter(subject)
	if full {
		return nil, l != nil
	}
	w = &waiter{of: l, cost: cost, asks: cost, most: most, began: time.Now(), news: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == len(l.order.waiters) {
		l.next++ // it looks at its prospects itself
	}
	l.order.add(w)
	return w, l.order.left > 1
}

// enter returns the line of a subject. If all queues are full, it returns nil for a
// subject without a line.
func (q *queues) enter(subject string) (l *line, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l = q.lines[subject]
	if q.all.Add(1) > q.most {
		q.all.Add(-1)
		return l, true
	}
	if l == nil {
		l = &line{subject: subject}
		q.lines[subject] = l
	}
	l.callers++
	return l, false
}

func (q *queues) leave(w *waiter) {
	l := w.of
	l.remove(w)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all.Add(-1)
	if l.callers--; l.callers == 0 {
		delete(q.lines, l.subject)
	}
}

// changed makes the first waiter of a subject ask again, because permits were given back.
func (q *queues) changed(subject string) {
	q.mu.Lock()
	l := q.lines[subject]
	q.mu.Unlock()
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = nil
	l.freed++
	if first := l.order.first(); first != nil {
		first.hear()
	}
}

func (l *line) remove(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, pending := l.order.first(), l.pending()
	if l.order.remove(w) {
		l.next, l.again = len(l.order.waiters), false
		if pending {
			l.lookAgain()
		}
	}
	if first == w && l.order.left > 0 {
		l.order.first().hear()
	}
}

// saw stores how a waiter's request was decided. If permits were given back since the
// request was sent, a denial is not stored, because it may be over.
func (l *line) saw(w *waiter, d *Decision, err error, freed int) {
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !d.Allowed && l.freed != freed {
		return
	}
	news := l.seen == nil || !d.Allowed // others may have to wait longer than they expected
	l.seen = &sight{*d, time.Now()}
	if d.Allowed {
		l.order.clear(w)
	}
	if !news {
		return
	}
	l.lookAgain()
	if first := l.order.first(); first != w {
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
