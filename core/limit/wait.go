package limit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrQueue says that MaxWaiting callers wait already.
var ErrQueue = errors.New("limit: too many callers wait")

// Wait asks for one permit and waits until it is granted or ctx ends. Callers
// of one subject in this process are admitted in the order of their calls; of
// several processes that wait, any may be first. It asks Redis once, and again
// each time the limit says that a permit should be there.
//
// The error is ctx.Err(), [ErrQueue] when Options.MaxWaiting callers of the
// limiter wait already, [ErrSubject], or, with FailClosed, that of Redis. What
// was granted is always returned: who waited for it has it.
func (l *Limiter) Wait(ctx context.Context, subject string) (Decision, error) {
	return l.WaitN(ctx, subject, 1)
}

// WaitN is Wait for n permits at once. One that asks for many is not overtaken
// by others that ask for fewer. An n out of range is a [*CostError].
func (l *Limiter) WaitN(ctx context.Context, subject string, n int64) (Decision, error) {
	if err := l.check(ctx, subject, n); err != nil {
		return Decision{}, err
	}
	ticket, ok := l.queues.join(subject)
	if !ok {
		return Decision{}, ErrQueue
	}
	defer l.queues.leave(subject, ticket)
	select {
	case <-ticket.turn:
	case <-ctx.Done():
		return Decision{}, ctx.Err()
	}
	for {
		d, err := l.decide(ctx, subject, n, false)
		if err != nil || d.Allowed {
			return d, err
		}
		if err := sleep(ctx, d.RetryAfter); err != nil {
			return Decision{}, err
		}
	}
}

// leastRest keeps a waiter from asking more often than any clock of Redis can
// tell apart.
const leastRest = time.Millisecond

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, leastRest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// queues are the callers that wait, by subject: the first of each has its turn.
type queues struct {
	most int
	sum  *atomic.Int64 // of the callers in all queues of one New

	mu    sync.Mutex
	all   int
	lines map[string][]*ticket
}

type ticket struct{ turn chan struct{} }

func newQueues(most int, sum *atomic.Int64) *queues {
	return &queues{most: most, sum: sum, lines: make(map[string][]*ticket)}
}

func (q *queues) join(subject string) (*ticket, bool) {
	t := &ticket{turn: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all >= q.most {
		return nil, false
	}
	q.all++
	q.sum.Add(1)
	q.lines[subject] = append(q.lines[subject], t)
	if len(q.lines[subject]) == 1 {
		close(t.turn)
	}
	return t, true
}

func (q *queues) leave(subject string, t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all--
	q.sum.Add(-1)
	at := slices.Index(q.lines[subject], t)
	line := slices.Delete(q.lines[subject], at, at+1)
	switch {
	case len(line) == 0:
		delete(q.lines, subject)
		return
	case at == 0:
		close(line[0].turn)
	}
	q.lines[subject] = line
}
