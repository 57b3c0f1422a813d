package queue

import "github.com/neap-go/neap/core/internal/background"

// BeginDirect reports whether a caller is alone: nothing waits, nothing is in flight, the
// last batch had one call, and the process has CPU to spare. If so, the caller makes its
// call by itself and reports the result to EndDirect.
func (q *Queue) BeginDirect() (*Batch, bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.length > 0 || q.scheduled || len(q.inFlight) > 0 || q.lastCalls > 1 || q.state != alive || !q.pace.fast() || q.grace(now) > 0 {
		return nil, false
	}
	b := q.newBatch()
	b.direct = true
	q.start(b, now, 1)
	return b, true
}

// EndDirect ends what BeginDirect began. left says that the budget ended first. Then the
// result says something about the server only if the caller noticed that at most 5 ms
// later. A caller that is later shows that the process is short of CPU.
func (q *Queue) EndDirect(b *Batch, r Result, left bool) {
	now := q.now()
	if late := now - b.sent - q.pace.budget; left && late > punctual { // its answer may have arrived and not been read
		q.turn.note(late, now)
		r = Ignored
	}
	q.finish(b, r, 1)
	q.mu.Lock()
	*b = Batch{Entries: b.Entries[:0]}
	q.free = append(q.free, b)
	leave := q.maySend(now, true)
	if leave {
		q.scheduled = true
	}
	q.mu.Unlock()
	if leave {
		background.Go(func() { q.sendBatches(false) })
	}
}
