package queue

import (
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// probe starts to ask a silent server whether it answers, if a call waits for that.
func (q *Queue) probe() {
	if q.probing || q.waiting.length == 0 {
		return
	}
	q.probing = true
	background.Go(q.probeUntilAnswered)
}

// probeUntilAnswered asks until the server is no longer silent, or no call waits.
func (q *Queue) probeUntilAnswered() {
	for {
		key, ok := q.nextWaiting()
		if !ok {
			return
		}
		began := q.now()
		r := q.server.Probe(key, time.Duration(q.turn.grace()))
		q.mu.Lock()
		alone := q.noted < began
		if q.state == silent {
			switch r {
			case Answered, Unknown:
				q.state = alive
			case Unsent:
				q.state = unproven
			default:
			}
		}
		q.mu.Unlock()
		if r == Unanswered && alone { // all callers have left before their budgets ended
			q.server.Note(Unsent, 0) // the probe leaves no call in doubt
		}
		if r == Unanswered || r == Ignored {
			time.Sleep(min(time.Duration(q.pace.budget/pauses), mostPause))
		}
	}
}

// There are at most so many pauses between probes in a budget, and no pause is longer
// than that.
const (
	pauses    = 16
	mostPause = 50 * time.Millisecond
)

// nextWaiting returns the key of a call that waits for a silent server. If there is none,
// the probes end and new calls may be sent.
func (q *Queue) nextWaiting() (key string, ok bool) {
	q.mu.Lock()
	for q.waiting.length > 0 && q.waiting.first.state.Load() != open {
		q.waiting.pop()
	}
	if q.state == silent && q.waiting.length > 0 {
		defer q.mu.Unlock()
		return q.waiting.first.Call.Key(), true
	}
	q.probing = false
	leave := q.maySend(q.now(), true)
	q.scheduled = q.scheduled || leave
	q.mu.Unlock()
	if leave {
		background.Go(func() { q.sendBatches(false) })
	}
	return "", false
}
