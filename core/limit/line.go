package limit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// queues are the callers that wait, by subject. The first of each asks Redis.
type queues struct {
	most int
	sum  *atomic.Int64 // of the callers in all queues of one New

	mu    sync.Mutex
	all   int
	lines map[string]*line
}

// line is the queue of a subject.
type line struct {
	waiters []*waiter
	seen    *sight // the last answer of Redis to one of them; nil if there is none
	freed   int    // how often permits were given back in this process
}

type waiter struct {
	subject string
	cost    int64         // 0 when it was granted
	news    chan struct{} // that it is the first now, or that another answer is there
}

// sight is what a decision told of a subject, and when.
type sight struct {
	Decision

	at time.Time
}

// place is where a waiter stands.
type place struct {
	first    bool
	ahead    int64 // the cost of those before it
	requests int64 // how many they are
	seen     *sight
	freed    int
}

func newQueues(most int, sum *atomic.Int64) *queues {
	return &queues{most: most, sum: sum, lines: make(map[string]*line)}
}

// join is nil if there is no place. It says whether others of the subject wait.
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

// saw notes how a waiter's request was decided. The others hear of the first answer, and of a denial, after which they
// wait longer than they expected. A denial is not noted if permits were given back since the request: it may be over.
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

// changed has the first of a subject ask again, since permits were given back.
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
	default: // it has not looked since the last
	}
}

// sleep waits for news, no longer than d.
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

// leastRest keeps a waiter from asking more often than any clock of Redis can
// tell apart.
const leastRest = time.Millisecond

// rest is how long a waiter of that cost should not ask, by what was seen last. If its request is
// expected to be denied, d is that denial.
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

// expected says whether a request is expected to be denied, and makes d that denial.
func (s *sight) expected(l *Limiter, d *Decision, passed time.Duration, w wanted) bool {
	if s.grant == nil || len(s.grant.readings) == 0 || s.permits != nil || unshared(l.rules, s.grant.readings, w) { // the readings do not tell
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

// beyond is how much longer than a request of the whole limit one has to wait, at least, that asks for
// so many permits over it.
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

// foresee is what a rule would answer to what costs it that, so many nanoseconds after a
// reading. If the reading does not tell when a log would grant it, the time is when the next
// permit of the log is free.
func foresee(r rule, was reading, passed, cost int64) reading {
	aged := r.age(was, passed/int64(time.Microsecond))
	aged.ban = agedBan(was.ban, passed)
	aged.instances = was.instances
	if _, log := r.(*slidingLog); !log {
		aged.denied = cost > stateOf(r, aged, 0).Remaining
		return aged
	}
	if !was.denied {
		aged.n[2] = 0 // it is the mark of what was granted
		if aged.n[0]+cost > r.id().limit {
			aged.n[2] = aged.n[1]
		}
	}
	aged.denied = aged.n[2] > 0 || was.denied && passed == 0
	return aged
}
