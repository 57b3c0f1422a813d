package queue

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// direct sends the call of a lone caller on the caller's own goroutine, and reports whether
// it did. A short call does not go so: its batch waits for the answer longer than its
// caller, and so shows whether the server answers.
func (q *Queue) direct(ctx context.Context, c Call) bool {
	if deadline, _ := ctx.Deadline(); !q.honours || deadline.Before(c.Due()) {
		return false
	}
	b, ok := q.beginDirect()
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
		q.endDirect(b, r, over)
	}()
	r = q.server.Alone(ctx, c)
	return true
}

// beginDirect reports whether a caller is alone: nothing waits, nothing is in flight, the
// last batch had one call, and the process has CPU to spare. If so, the caller makes its
// call by itself and reports the result to endDirect.
func (q *Queue) beginDirect() (*Batch, bool) {
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

// endDirect ends what beginDirect began. left says that the budget ended first. Then the
// result says something about the server only if the caller noticed that at most 5 ms
// later. A caller that is later shows that the process is short of CPU.
func (q *Queue) endDirect(b *Batch, r Result, left bool) {
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
