package queue

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// sendLone sends the call of a lone caller on the caller's own goroutine, and reports whether
// it did. A short call does not go so: its batch waits for the answer longer than its
// caller, and so shows whether the server answers.
func (q *Queue) sendLone(ctx context.Context, c Call) bool {
	if deadline, _ := ctx.Deadline(); !q.honours || deadline.Before(c.Due()) {
		return false
	}
	b, ok := q.beginLone(c)
	if !ok {
		return false
	}
	r := Ignored // the result if a hook ends the goroutine
	defer func() {
		over := !r.Replied() && ctx.Err() != nil
		if over && time.Now().Before(c.Due()) { // its caller left
			r = Ignored
			q.server.Left(c.Key())
		}
		q.endLone(b, r, over)
	}()
	r = q.server.SendLone(ctx, c)
	return true
}

// beginLone reports whether a caller is alone: nothing waits, nothing is in flight, the
// last batch had one call, and the process has CPU to spare. If so, the caller makes its
// call by itself and reports the result to endLone.
func (q *Queue) beginLone(c Call) (*Batch, bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.length > 0 || q.scheduled || len(q.inFlight) > 0 || q.lastCalls > 1 || q.state != alive || !q.pace.fast() || q.grace(now) > 0 {
		return nil, false
	}
	b := q.newBatch()
	b.lone, b.latest = c, q.at(c.Due())
	q.start(b, now, 1)
	return b, true
}

// endLone ends what beginLone began. over says that the caller's context ended before
// there was a reply. If that was the end of the budget, the result says something about the
// server only if the caller noticed it at most 5 ms later. A caller that is later shows that
// the process is short of CPU.
func (q *Queue) endLone(b *Batch, r Result, over bool) {
	now := q.now()
	if late := now - b.sent - q.pace.budget; over && late > punctual { // its answer may have arrived and not been read
		if q.mu.Lock(); !b.lost { // sweep had no turn either
			q.turn.note(late, now)
		}
		q.mu.Unlock()
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
