package queue

import (
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// alarm is the timer of a queue. It is set to the earliest deadline of a call that has
// not ended.
type alarm struct {
	timer *time.Timer
	at    int64 // 0 if it is not set
}

func (a *alarm) set(q *Queue, now, at int64) {
	if a.at != 0 && a.at <= at {
		return
	}
	a.at = max(at, now)
	if in := time.Duration(max(at-now, 0)); a.timer == nil {
		a.timer = background.AfterFunc(in, q.sweep)
	} else {
		a.timer.Reset(in)
	}
}

// sweep ends the waits whose deadlines have passed. A batch is lost if it has no answer
// when the budgets of its calls have ended: it no longer counts as in flight, and the
// server counts as silent. While the process is short of CPU, callers wait for the grace
// longer, because their answers may be there.
func (q *Queue) sweep() {
	q.mu.Lock()
	at := q.alarm.at
	q.mu.Unlock()
	if at == 0 { // another sweep has ended, and no call waits
		return
	}
	q.takeTurn(at)
	now := q.now()
	q.mu.Lock()
	q.alarm.at = 0
	grace := q.grace(now)
	late := q.state != alive || q.late(now)
	unsent := q.expireWaiting(now, grace)
	if !late {
		unsent = 0
	}
	if unsent > 0 {
		q.noted = now
	}
	lost := q.expireInFlight(now, grace)
	q.mu.Unlock()
	for _, one := range lost {
		q.server.Note(one.result, one.calls)
	}
	for range unsent {
		q.server.Note(Unsent, 1)
	}
}

// withdraw keeps from being written what was not written yet.
func (b *Batch) withdraw() Result {
	if b.lone != nil && !b.lone.Withdraw() {
		return Unanswered
	}
	for _, e := range b.Entries {
		if !e.Call.Withdraw() {
			return Unanswered
		}
	}
	return Unsent
}

// expireWaiting returns how many calls were too late to be sent, although their callers had
// waited for the whole budget.
func (q *Queue) expireWaiting(now, grace int64) (expired int) {
	q.waiting.drop(func(e *Entry) bool {
		switch {
		case e.state.Load() != open:
		case e.deadline+grace > now:
			q.alarm.set(q, now, e.deadline+grace)
			return false
		case q.expire(e) && !e.isShort():
			expired++
		}
		return true
	})
	return expired
}

// lostBatch says how many calls a lost batch had. Its result is Unsent if none of them
// was written.
type lostBatch struct {
	calls  int
	result Result
}

// expireInFlight returns the batches that are lost.
func (q *Queue) expireInFlight(now, grace int64) (lost []lostBatch) {
	kept := q.inFlight[:0]
	for _, b := range q.inFlight {
		for _, e := range b.Entries {
			if e.state.Load() != open {
				continue
			}
			if e.deadline+grace <= now {
				q.expire(e)
			} else {
				q.alarm.set(q, now, e.deadline+grace)
			}
		}
		// A caller that leaves before its budget ends says nothing about the server, so
		// latest is the end of a budget.
		end := max(b.latest, b.sent+q.pace.overdue()) + grace
		if end > now {
			q.alarm.set(q, now, end)
			kept = append(kept, b)
			continue
		}
		one := lostBatch{len(b.Entries), b.withdraw()}
		if b.lone != nil { // something below holds its caller up, such as a hook
			one.calls = 1
		}
		b.lost = true
		q.calls -= one.calls
		lost = append(lost, one)
	}
	clear(q.inFlight[len(kept):])
	q.inFlight = kept
	if len(lost) > 0 {
		q.state = silent
		q.probe()
	}
	return lost
}
