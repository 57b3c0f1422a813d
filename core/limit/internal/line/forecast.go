package line

import (
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// forecast is what a waiter can expect.
type forecast struct {
	first  bool          // it is the first of its queue
	rest   time.Duration // how long it should not ask
	left   time.Duration // how long it waits at most
	freed  int
	denial *Denial // not nil if it is denied
}

// forecast returns what a waiter can expect. It denies a waiter that cannot be served in
// time.
func (q *queue) forecast(w *Waiter) forecast {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := forecast{first: q.order.first() == w, freed: q.freed}
	if w.denial == nil {
		f.rest, f.left = q.expect(w, q.order.before(w.at), time.Now())
	}
	f.denial = w.denial
	return f
}

// expect returns how long a waiter should not ask and how long it waits at most, by what
// was last seen and what those ahead ask for. It denies a waiter that cannot be served in
// time.
func (q *queue) expect(w *Waiter, ahead kind.Wanted, now time.Time) (rest, left time.Duration) {
	late := time.Duration(0)
	switch {
	case w.known:
		late = w.late
	case q.last != nil: // from now on the caller waits for permits, and not for an answer
		w.known, w.began = true, now
	}
	left = kind.Forever
	if w.most != nil {
		left = min(*w.most, kind.Forever/2) - now.Sub(w.began)
	}
	if q.last == nil {
		return 0, left
	}
	var few [kind.Few]kind.Reading
	told, rest := q.rest(w.set, ahead.Plus(kind.Wants(w.asks)), now, few[:0])
	if told.denied && w.most != nil && rest > left+late {
		w.denial = told.denial(&q.last.Answer)
		q.order.clear(w)
	}
	return rest, left
}

// leastRest is the shortest time between two questions of a waiter. No clock of Redis
// tells shorter times apart.
const leastRest = time.Millisecond

// rest returns what the last answer tells of a request that asks for so much, and how long a caller
// should not ask for it.
func (q *queue) rest(set *kind.Set, asks kind.Wanted, now time.Time, into []kind.Reading) (told foreseen, rest time.Duration) {
	passed := now.Sub(q.last.at)
	if !q.last.Allowed {
		rest = leastRest - passed
	}
	if told = q.last.foresee(set, passed, asks, into); told.denied {
		rest = max(rest, told.retryAfter)
	}
	return told, rest
}

func (q *queue) pending() bool { return q.next < len(q.order.waiters) }

// lookAgain has all waiters looked at, because they may have to wait longer than they
// expected.
func (q *queue) lookAgain() {
	if q.pending() {
		q.again = true
		return
	}
	q.next = 0
}

// someWaiters is how many waiters of a queue are looked at without a break.
const someWaiters = 256

// look denies those waiters that cannot be served in time any more. The first of the queue
// calls it whenever it is about to ask or to rest. It looks at someWaiters at least, and
// then at more for a quarter of the time in which the caller should not ask: so the next
// grant is not delayed, and a queue costs a quarter of a processor at most.
func (q *queue) look(rest time.Duration) {
	began := time.Now()
	for more := true; more; {
		more = q.lookAtSome() && time.Since(began) < rest/4
	}
}

// lookAtSome reports whether there are more to look at.
func (q *queue) lookAtSome() (more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.pending() {
		return false
	}
	now := time.Now()
	q.next = max(q.next, q.order.head+1) // the first makes its own forecast
	ahead := q.order.before(q.next)
	end := min(q.next+someWaiters, len(q.order.waiters))
	for _, w := range q.order.waiters[q.next:end] {
		if w == nil || w.cost != w.asks {
			continue
		}
		if w.most != nil && w.denial == nil {
			if q.expect(w, ahead, now); w.denial != nil {
				w.hear()
			}
		}
		ahead = ahead.Plus(kind.Wants(w.cost))
	}
	q.next = end
	if !q.pending() && q.again {
		q.next, q.again = 0, false
	}
	return q.pending()
}
