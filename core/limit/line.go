package limit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// queues are the callers that wait, by subject. Only the first caller of each subject
// asks Redis.
type queues struct {
	most int
	sum  *atomic.Int64 // callers in all queues of a limiter and of those that With made from it

	mu    sync.Mutex
	all   int
	lines map[string]*line
}

// line is the queue of a subject.
type line struct {
	waiters []*waiter
	seen    *sight // what Redis last answered to one of them; nil if it has not answered yet
	freed   int    // counts how often this process gave permits back
}

type waiter struct {
	subject string
	cost    int64         // 0 after it was granted
	news    chan struct{} // signals that the waiter is now the first, or that there is another answer
}

// sight is a decision about a subject, and when it was made.
type sight struct {
	Decision

	at time.Time
}

// place says where a waiter is in its queue.
type place struct {
	first    bool
	ahead    int64 // the sum of the costs before it
	requests int64 // how many requests are before it
	seen     *sight
	freed    int
}

func newQueues(most int, sum *atomic.Int64) *queues {
	return &queues{most: most, sum: sum, lines: make(map[string]*line)}
}

// join returns nil if MaxWaiting callers wait already. queued reports whether others wait
// for the subject.
func (q *queues) join(subject string, cost int64) (w *waiter, queued bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[subject]
	if q.all >= q.most {
		return nil, l != nil
	}
	q.all++
	q.sum.Add(1)
	if l == nil {
		l = new(line)
		q.lines[subject] = l
	}
	w = &waiter{subject: subject, cost: cost, news: make(chan struct{}, 1)}
	l.waiters = append(l.waiters, w)
	return w, len(l.waiters) > 1
}

func (q *queues) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all--
	q.sum.Add(-1)
	l := q.lines[w.subject]
	at := slices.Index(l.waiters, w)
	l.waiters = slices.Delete(l.waiters, at, at+1)
	switch {
	case len(l.waiters) == 0:
		delete(q.lines, w.subject)
	case at == 0:
		l.waiters[0].hear()
	}
}

func (q *queues) place(w *waiter) place {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[w.subject]
	p := place{first: l.waiters[0] == w, seen: l.seen, freed: l.freed}
	for _, other := range l.waiters {
		if other == w {
			break
		}
		p.ahead += other.cost
		p.requests += min(other.cost, 1)
	}
	return p
}

// saw stores how a waiter's request was decided. It wakes the others after the first
// answer, and after a denial, because they must then wait longer than they expected. If
// permits were given back since the request was sent, a denial is not stored, because it
// may be over.
func (q *queues) saw(w *waiter, d *Decision, err error, freed int) {
	if err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[w.subject]
	if !d.Allowed && l.freed != freed {
		return
	}
	first := l.seen == nil
	l.seen = &sight{*d, time.Now()}
	if d.Allowed {
		w.cost = 0
	}
	if d.Allowed && !first {
		return
	}
	for _, other := range l.waiters {
		other.hear()
	}
}

// changed makes the first waiter of a subject ask again, because permits were given back.
func (q *queues) changed(subject string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[subject]; l != nil {
		l.seen = nil
		l.freed++
		l.waiters[0].hear()
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

// leastRest is the shortest time between two questions of a waiter. No clock of Redis
// tells shorter times apart.
const leastRest = time.Millisecond

// rest returns how long a waiter of that cost should not ask, by what was last seen. If
// its request would be denied, denied is true and d is that denial.
func (p *place) rest(l *Limiter, d *Decision, cost int64) (rest time.Duration, denied bool) {
	if p.seen == nil {
		return 0, false
	}
	passed := time.Since(p.seen.at)
	if !p.seen.Allowed {
		rest = leastRest - passed
	}
	if p.seen.expected(l, d, passed, wanted{p.ahead + cost, p.requests + min(cost, 1)}) {
		return max(rest, d.RetryAfter), true
	}
	return rest, false
}

// expected reports whether a request would be denied. If so, it makes d that denial.
func (s *sight) expected(l *Limiter, d *Decision, passed time.Duration, w wanted) bool {
	if s.grant == nil || len(s.grant.readings) == 0 || s.permits != nil || unshared(l.rules, s.grant.readings, w) { // the readings cannot tell
		*d = s.Decision
		d.RetryAfter = max(d.RetryAfter-passed, 0)
		return !d.Allowed
	}
	var few [fewRules]reading
	readings := append(few[:0], s.grant.readings...)
	for i, r := range l.rules {
		readings[i] = foresee(r, readings[i], int64(passed), w.of(r))
	}
	l.judge(d, readings, w)
	d.grant, d.Degraded, d.Cause = l.refused, s.Degraded, s.Cause
	i := 0
	for state := range d.States() {
		if over := w.of(l.rules[i]) - state.Limit; over > 0 && !state.Shadow {
			d.RetryAfter = max(d.RetryAfter, state.RetryAfter+beyond(l.rules[i], &state, over))
		}
		i++
	}
	return !d.Allowed
}

// beyond returns how much longer a request must wait, at least, that asks for more than
// the limit. over is by how many permits. The wait is measured from when a request of the
// whole limit would be granted.
func beyond(r rule, s *State, over int64) time.Duration {
	var wait float64
	switch r := r.(type) {
	case *bucket:
		wait = float64(over) * float64(r.unit) / float64(r.drain) * float64(r.tick)
	case *keptBucket:
		wait = float64(over) * micro / float64(r.drain) * float64(r.per) * float64(time.Microsecond)
	case *calendar: // windows differ in length
	case *sliding: // two windows overlap
		wait = float64(over/s.Limit) * float64(s.Window)
	default:
		windows := ceilDiv(over-s.Remaining, s.Limit)
		if s.Remaining == s.Limit {
			windows++
		}
		wait = float64(windows) * float64(s.Window)
	}
	return time.Duration(min(wait, float64(forever/4)))
}

// foresee returns what a rule would answer to a cost, some nanoseconds after a reading.
// If the reading of a log does not say when the cost would be granted, the time is when
// the log's next permit is free.
func foresee(r rule, was reading, passed, cost int64) reading {
	aged := r.age(was, passed/int64(time.Microsecond))
	aged.ban = agedBan(was.ban, passed)
	aged.instances = was.instances
	if _, log := r.(*slidingLog); !log {
		aged.denied = cost > stateOf(r, aged, 0).Remaining
		return aged
	}
	if !was.denied {
		aged.n[2] = 0 // after a grant, this number is the mark of its entries
		if aged.n[0]+cost > r.id().limit {
			aged.n[2] = aged.n[1]
		}
	}
	aged.denied = aged.n[2] > 0 || was.denied && passed == 0
	return aged
}
