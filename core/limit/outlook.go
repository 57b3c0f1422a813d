package limit

import "time"

// outlook is what a waiter can expect.
type outlook struct {
	first   bool          // it is the first of its line
	rest    time.Duration // how long it should not ask
	left    time.Duration // how long it waits at most
	freed   int
	refusal *Decision // not nil if it is denied
}

// outlook returns what a waiter can expect. It denies a waiter that cannot be served in
// time.
func (l *line) outlook(of *Limiter, w *waiter) outlook {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := outlook{first: l.order.first() == w, freed: l.freed}
	if w.refusal == nil {
		o.rest, o.left = l.expect(of, w, l.order.before(w.at), time.Now())
	}
	o.refusal = w.refusal
	return o
}

// expect returns how long a waiter should not ask and how long it waits at most, by what
// was last seen and what those ahead ask for. It denies a waiter that cannot be served in
// time.
func (l *line) expect(of *Limiter, w *waiter, ahead wanted, now time.Time) (rest, left time.Duration) {
	late := time.Duration(0)
	switch {
	case w.known:
		late = of.opts.Budget // clocks and scheduling can delay it by up to a Budget
	case l.seen != nil: // from now on the caller waits for permits, and not for an answer
		w.known, w.began = true, now
	}
	left = forever
	if w.most != nil {
		left = min(*w.most, forever/2) - now.Sub(w.began)
	}
	var d Decision
	rest, denied := l.rest(of, &d, ahead.plus(aRequest(w.asks)), now)
	if denied && w.most != nil && rest > left+late {
		w.refusal = &d
		l.order.clear(w)
	}
	return rest, left
}

// leastRest is the shortest time between two questions of a waiter. No clock of Redis
// tells shorter times apart.
const leastRest = time.Millisecond

// rest returns how long a caller should not ask, by what was last seen. If its request
// would be denied, denied is true and d is that denial.
func (l *line) rest(of *Limiter, d *Decision, asks wanted, now time.Time) (rest time.Duration, denied bool) {
	if l.seen == nil {
		return 0, false
	}
	passed := now.Sub(l.seen.at)
	if !l.seen.Allowed {
		rest = leastRest - passed
	}
	if l.seen.expected(of, d, passed, asks) {
		return max(rest, d.RetryAfter), true
	}
	return rest, false
}

func (l *line) pending() bool { return l.next < len(l.order.waiters) }

// lookAgain has all waiters looked at, because they may have to wait longer than they
// expected.
func (l *line) lookAgain() {
	if l.pending() {
		l.again = true
		return
	}
	l.next = 0
}

// someWaiters is how many waiters of a line are looked at without a break.
const someWaiters = 256

// look denies those waiters that cannot be served in time any more. The first of the line
// calls it whenever it is about to ask or to rest. It looks at someWaiters at least, and
// then at more for a quarter of the time in which the caller should not ask: so the next
// grant is not delayed, and a line costs a quarter of a processor at most.
func (l *line) look(of *Limiter, rest time.Duration) {
	began := time.Now()
	for more := true; more; {
		more = l.lookAtSome(of) && time.Since(began) < rest/4
	}
}

// lookAtSome reports whether there are more to look at.
func (l *line) lookAtSome(of *Limiter) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pending() {
		return false
	}
	now := time.Now()
	l.next = max(l.next, l.order.head+1) // the first looks at its prospects itself
	ahead := l.order.before(l.next)
	end := min(l.next+someWaiters, len(l.order.waiters))
	for _, w := range l.order.waiters[l.next:end] {
		if w == nil || w.cost != w.asks {
			continue
		}
		if w.most != nil && w.refusal == nil {
			if l.expect(of, w, ahead, now); w.refusal != nil {
				w.hear()
			}
		}
		ahead = ahead.plus(aRequest(w.cost))
	}
	l.next = end
	if !l.pending() && l.again {
		l.next, l.again = 0, false
	}
	return l.pending()
}
