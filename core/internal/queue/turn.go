package queue

import (
	"sync"
	"sync/atomic"
	"time"
)

// If other goroutines compute, a goroutine that is ready may wait longer for a processor
// than Redis takes to answer. This wait is its turn. Meanwhile answers lie in sockets,
// and the time until they are read says nothing about the server.
const (
	punctual = int64(5 * time.Millisecond)   // a longer turn shows that the process has no CPU to spare
	mostTurn = int64(200 * time.Millisecond) // a longer turn counts as this, because the process may have been stopped
	unpolled = int64(10 * time.Millisecond)  // the longest pause between two looks of the runtime at sockets while goroutines compute
	turnSpan = int64(time.Second / 2)        // turns differ, so the longest of two spans counts
	turnsOld = 3                             // a long turn is measured again when it is older than so many times its length
)

// turn is how long goroutines that are ready wait for a processor.
type turn struct {
	at    atomic.Int64 // when a turn was last measured
	worst atomic.Int64 // the longest of both spans

	mu    sync.Mutex
	spans [2]int64 // the longest turn of this span of time, and of the span before
	began int64    // when this span began
}

func (t *turn) note(took, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	took = min(max(took, 0), mostTurn)
	if now-t.began > 2*turnSpan { // nothing was measured since then
		t.spans[0] = 0
	}
	if now-t.began > turnSpan {
		t.spans[1], t.spans[0], t.began = t.spans[0], 0, now
	}
	t.spans[0] = max(t.spans[0], took)
	t.worst.Store(max(t.spans[0], t.spans[1]))
	t.at.Store(now)
}

// grace returns how long an answer may lie unread: three turns, and the time until the
// runtime looks at sockets. One turn is that of the reader, one is under way before it,
// and one allows for turns that differ. It is 0 if the process has CPU to spare.
func (t *turn) grace() int64 {
	if took := t.worst.Load(); took > punctual {
		return 3*took + unpolled
	}
	return 0
}

// old reports whether the process may have CPU to spare again.
func (t *turn) old(now int64) bool { return now-t.at.Load() > turnsOld*t.worst.Load() }

// grace returns the grace of the process while answers come. If the server does not
// answer, it returns 0, because there are no answers to wait for.
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

// takeTurn always yields. It measures the time since at, when its goroutine should have
// begun.
func (q *Queue) takeTurn(at int64) {
	q.gosched()
	now := q.now()
	q.turn.note(now-at, now)
}
