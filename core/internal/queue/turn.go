package queue

import (
	"sync"
	"sync/atomic"
	"time"
)

// If other goroutines compute, a goroutine that is ready may wait longer for a processor than Redis needs to answer:
// that is its turn. Answers lie in sockets meanwhile, and the time until they are read tells nothing of the server.
const (
	punctual = int64(5 * time.Millisecond)   // a turn that takes longer shows that the process has no CPU to spare
	mostTurn = int64(200 * time.Millisecond) // a longer turn counts as this: the process may have been stopped
	unpolled = int64(10 * time.Millisecond)  // how seldom the runtime looks at sockets while goroutines compute
	turnSpan = int64(time.Second / 2)        // turns differ: the longest of two spans counts
	turnsOld = 3                             // a long turn is measured again when its age is more than so many of it
)

// turn is how long goroutines that are ready wait for their turns.
type turn struct {
	at    atomic.Int64 // when one was last taken
	worst atomic.Int64 // of both spans

	mu    sync.Mutex
	spans [2]int64 // the longest turn of this span of time, and of the one before
	began int64    // this span
}

func (t *turn) note(took, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	took = min(max(took, 0), mostTurn)
	if now-t.began > 2*turnSpan { // nothing was measured since
		t.spans[0] = 0
	}
	if now-t.began > turnSpan {
		t.spans[1], t.spans[0], t.began = t.spans[0], 0, now
	}
	t.spans[0] = max(t.spans[0], took)
	t.worst.Store(max(t.spans[0], t.spans[1]))
	t.at.Store(now)
}

// grace is how long an answer may lie unread: three turns, and the time until the runtime looks at sockets. One turn
// is that of the reader, one is under way before it, and one allows for turns that differ. It is 0 if the process has
// CPU to spare.
func (t *turn) grace() int64 {
	if took := t.worst.Load(); took > punctual {
		return 3*took + unpolled
	}
	return 0
}

// old reports whether the process may have CPU to spare by now.
func (t *turn) old(now int64) bool { return now-t.at.Load() > turnsOld*t.worst.Load() }

// grace is that of the process while answers come. Those of a server that does not answer are not waited for.
func (q *Queue) grace(now int64) int64 {
	if q.state != alive && now-q.answered > 2*turnSpan {
		return 0
	}
	return q.turn.grace()
}

// yield lets goroutines that are ready run first, unless that would take long.
func (q *Queue) yield() {
	if now := q.now(); q.turn.grace() == 0 || q.turn.old(now) {
		q.takeTurn(now)
	}
}

// takeTurn always yields. It counts the time since its goroutine should have begun.
func (q *Queue) takeTurn(at int64) {
	q.gosched()
	now := q.now()
	q.turn.note(now-at, now)
}
