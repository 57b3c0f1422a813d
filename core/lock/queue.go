package lock

import (
	"slices"
	"sync"
	"time"
)

// queues knows the callers of this process that wait for a key, and the locks that this
// process holds. The callers of one owner form one queue, and only the first of a queue
// asks Redis. A caller that waits for a lock of its own process does not ask at all.
type queues struct {
	mu      sync.Mutex
	entries map[string]*entry
	spare   []*entry // empty entries to reuse, since most locks have no waiters
	joined  uint64   // how many callers have joined a queue
}

// spares is how many empty entries are kept.
const spares = 64

// entry is what this process knows about one key.
type entry struct {
	waiting row             // all, in the order in which they joined
	unnamed row             // those of the queue ""
	named   map[string]*row // those of the other queues
	held    []string        // the queue of each lock that this process holds
	changed chan struct{}   // closed when the lock may be free; nil while nothing listens to it
	handing time.Time       // when the first of the handoffs in a row was; zero if the lock was free since
	stands  bool            // this process may stand in line in Redis
}

// waiter is one caller in a queue.
type waiter struct {
	of         *queues
	key, queue string
	turn       chan struct{} // closed when the waiter is the first of its queue
	handed     chan handoff  // from the holder before it
	number     uint64        // the waiter's position among all that have joined
	beside     [2]neighbours // in the row of all, and in that of its queue
}

// now is the turn of a waiter that is the first of its queue when it joins.
var now = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (q *queues) join(key, queue string) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.joined++
	w := &waiter{of: q, key: key, queue: queue, turn: now, number: q.joined}
	e := q.at(key)
	if e.first(queue) != nil {
		w.turn = make(chan struct{})
	}
	if e.waiting.n+len(e.held) > 0 {
		w.handed = make(chan handoff, 1)
	}
	e.add(w)
	return w
}

// stand notes that this process asks for a place in line.
func (q *queues) stand(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil {
		e.stands = true
	}
}

// leave takes the waiter out of its queue. It returns a lock that was handed to the
// waiter and that the waiter did not take. stands reports that this process may stand in
// line, and no caller waits for the key any more.
func (w *waiter) leave() (h handoff, ok, stands bool) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	e := w.of.at(w.key)
	wasFirst := e.first(w.queue) == w
	e.remove(w)
	if next := e.first(w.queue); wasFirst && next != nil {
		close(next.turn)
	}
	stands = e.stands && e.waiting.n == 0
	w.of.clear(w.key, e)
	select {
	case h = <-w.handed:
		return h, true, stands
	default:
		return h, false, stands
	}
}

// successor reports whether a release may hand the lock to the first in the queue. last
// is the number of the last waiter that may get it. A waiter that joins later asks only
// after the lock was granted to it, and must not get it.
func (q *queues) successor(key string) (last uint64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil || !e.handing.IsZero() && time.Since(e.handing) > handsOn {
		return 0, false
	}
	if first := e.waiting.first; first == nil || first.handed == nil || first.queue != "" {
		return 0, false
	}
	if e.handing.IsZero() {
		e.handing = time.Now()
	}
	return q.joined, true
}

// hand gives a lock of this process to the first in the queue.
func (q *queues) hand(key string, h handoff) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		return false
	}
	w := e.first("")
	if w == nil || w.handed == nil || w.number > h.last {
		return false
	}
	select {
	case w.handed <- h:
		return true
	default:
		return false
	}
}

// changed returns a channel that is closed when asking Redis again makes sense.
func (w *waiter) changed() <-chan struct{} {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	e := w.of.at(w.key)
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

// waits reports whether a caller waits in a queue.
func (q *queues) waits(key, queue string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	return e != nil && e.first(queue) != nil
}

func (w *waiter) isFirst() bool {
	select {
	case <-w.turn:
		return true
	default:
		return false
	}
}

// busy reports whether this process holds a lock that excludes the waiter.
func (w *waiter) busy() bool {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	return slices.ContainsFunc(w.of.at(w.key).held, func(queue string) bool { return queue == "" || queue != w.queue })
}

func (q *queues) hold(key, queue string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.at(key)
	e.stands = e.stands && len(e.held) > 0 // a lock that was free is granted, so the place is gone
	e.held = append(e.held, queue)
}

func (q *queues) free(key, queue string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.at(key)
	if i := slices.Index(e.held, queue); i >= 0 {
		e.held = slices.Delete(e.held, i, i+1)
	}
	e.handing = time.Time{}
	e.notify()
	q.clear(key, e)
}

// notify makes the first of each queue ask again.
func (q *queues) notify(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil {
		e.notify()
	}
}

// size counts the callers that wait and the locks that this process holds.
func (q *queues) size() (waiting, held int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.entries {
		waiting, held = waiting+e.waiting.n, held+len(e.held)
	}
	return waiting, held
}

func (q *queues) at(key string) *entry {
	e := q.entries[key]
	if e == nil {
		if n := len(q.spare); n > 0 {
			e, q.spare = q.spare[n-1], q.spare[:n-1]
		} else {
			e = &entry{}
		}
		if q.entries == nil {
			q.entries = map[string]*entry{}
		}
		q.entries[key] = e
	}
	return e
}

func (q *queues) clear(key string, e *entry) {
	if e.waiting.n == 0 {
		e.stands = false
	}
	if e.waiting.n == 0 && len(e.held) == 0 {
		delete(q.entries, key)
		if len(q.spare) < spares {
			q.spare = append(q.spare, e)
		}
	}
}

func (e *entry) notify() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}
