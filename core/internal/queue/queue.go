package queue

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// ErrFull is the error of a call that was not sent because too many calls wait.
var ErrFull = errors.New("10,000 calls wait for this server already")

// errGone is the error of calls whose sending panicked, or whose goroutine a hook of the
// client ended.
var errGone = errors.New("the goroutine that sent the call ended")

// Queue is the queue of one server. It is safe for concurrent use, and you need not close
// it.
type Queue struct {
	server  Server
	honours bool // a lone caller may send its call by itself
	began   time.Time
	entries sync.Pool
	next    rule
	gosched func()      // runtime.Gosched; tests replace it
	left    atomic.Bool // callers of some waiting calls may have left
	turn    turn

	mu        sync.Mutex
	waiting   list
	scheduled bool     // a batch is about to take the calls that wait
	inFlight  []*Batch // the batches in flight, in their order
	calls     int      // how many calls they have
	last      int64    // when the last batch left
	lastCalls int      // how many calls the last batch had
	answered  int64    // when the last answer came
	noted     int64    // when a call that was not sent was last noted
	pace      pace
	state     serverState
	probing   bool
	free      []*Batch
	alarm     alarm
}

// serverState is what is known of the server.
type serverState int

const (
	unproven serverState = iota // it has not answered yet, or is not connected: one batch at a time
	alive
	silent // it did not answer a batch: nothing is sent until it answers a probe
)

// New makes a queue for calls with that budget. honours says that calls end at their
// deadlines: a lone caller then sends its call by itself.
func New(s Server, budget time.Duration, honours bool) *Queue {
	return &Queue{server: s, honours: honours, began: time.Now(), pace: newPace(budget), next: spaced, gosched: runtime.Gosched}
}

// rule reports whether another batch may leave while some are in flight. It is asked at
// an arrival and when a batch has returned. Tests use other rules.
type rule func(q *Queue, now int64, returned bool) bool

// now returns the time by the queue's clock. It is never 0.
func (q *Queue) now() int64 { return int64(time.Since(q.began)) + 1 }

// at returns a time by the queue's clock.
func (q *Queue) at(t time.Time) int64 { return int64(t.Sub(q.began)) + 1 }

// Do sends a call. It returns nil when the call has ended; the call then has its answer
// or its error. Any other error means that Do no longer waits: it is that of ctx,
// [context.DeadlineExceeded] for the deadline of ctx, or [ErrFull]. If such a call was
// withdrawn in time, it did not run. If sending did not return, the error is errGone. The
// context must have a deadline.
func (q *Queue) Do(ctx context.Context, c Call) error {
	if q.sendLone(ctx, c) {
		return nil
	}
	e, _ := q.entries.Get().(*Entry)
	if e == nil {
		e = &Entry{done: make(chan struct{}, 1)}
	}
	deadline, _ := ctx.Deadline()
	e.Call, e.Context, e.size = c, ctx, c.Size()
	e.deadline = q.at(deadline)
	e.due = max(q.at(c.Due()), e.deadline)
	ok, leave, alone := q.join(e)
	if !ok {
		q.reuse(e)
		return ErrFull
	}
	if leave {
		background.Go(func() { q.sendBatches(alone) })
	}
	if err := e.wait(ctx); err != nil {
		q.left.Store(true)
		return err
	}
	failed := e.failed
	q.reuse(e)
	return failed
}

// reuse keeps an entry to which nothing else refers.
func (q *Queue) reuse(e *Entry) {
	e.Call, e.Context, e.failed = nil, nil, nil
	e.state.Store(open)
	q.entries.Put(e)
}

// join puts an entry into the queue. It reports whether there was room, whether the
// caller must start to send batches, and whether the call is alone.
func (q *Queue) join(e *Entry) (ok, leave, alone bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.length >= mostWaiting && q.left.Swap(false) {
		q.waiting.drop(func(e *Entry) bool { return e.state.Load() != open })
	}
	if q.waiting.length >= mostWaiting {
		return false, false, false
	}
	q.waiting.push(e)
	q.alarm.set(q, now, e.deadline)
	if len(q.inFlight) > 0 && q.inFlight[0].lone != nil { // nobody set it for a lone call
		q.alarm.set(q, now, q.inFlight[0].latest)
	}
	if q.state == silent {
		q.probe()
		return true, false, false
	}
	leave = q.maySend(now, false)
	if leave {
		q.scheduled, q.last = true, now
	}
	return true, leave, q.lastCalls <= 1 && q.waiting.length == 1
}

// maySend reports whether the next batch may leave now. It is asked at an arrival and
// when another batch has returned.
func (q *Queue) maySend(now int64, returned bool) bool {
	switch {
	case q.waiting.length == 0, q.scheduled, q.state == silent:
		return false
	case len(q.inFlight) == 0:
		return true
	case q.state == unproven, q.calls >= q.pace.window, q.late(now):
		return false
	}
	return q.next(q, now, returned)
}

// spaced keeps batches from leaving together. Batches that leave together return
// together, and then the callers of one batch wait for the other.
func spaced(q *Queue, now int64, returned bool) bool {
	n := len(q.inFlight)
	switch {
	case n >= q.pace.batches():
		return false
	case now-q.last >= q.pace.gap():
		return true
	case returned:
		return false
	}
	return n <= soon || q.waiting.length >= crowd && n <= mostBatches/2
}

// late reports whether an answer is overdue. If so, nothing else leaves.
func (q *Queue) late(now int64) bool {
	return len(q.inFlight) > 0 && now-q.inFlight[0].sent > q.pace.overdue()+q.grace(now)
}

// sendBatches sends batches until there is none to send.
func (q *Queue) sendBatches(alone bool) {
	if !alone || q.turn.grace() > 0 {
		q.yield() // so that callers that were woken together leave together
	}
	q.sendFrom(q.nextBatch(true))
}

// sendFrom sends a batch and those that follow it. If sending does not return, the callers
// of the batch get errGone, nothing is learned about the server, and another goroutine goes
// on.
func (q *Queue) sendFrom(b *Batch) {
	defer func() {
		if b == nil {
			return
		}
		for _, e := range b.Entries {
			e.failed = errGone
		}
		q.complete(b, Ignored)
		background.Go(func() { q.sendFrom(q.nextBatch(false)) })
	}()
	for b != nil {
		r, sent := q.server.Send(b), b
		b = nil
		q.complete(sent, r)
		q.yield() // to the callers that the batch woke
		b = q.nextBatch(false)
	}
}

// nextBatch makes the next batch, or returns nil.
func (q *Queue) nextBatch(scheduled bool) *Batch {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if scheduled {
		q.scheduled = false
	} else if !q.maySend(now, true) {
		return nil
	}
	if q.state == silent { // it became silent after the batch was scheduled
		return nil
	}
	b := q.newBatch()
	room, grace := min(mostCalls, max(q.pace.window-q.calls, 1)), q.grace(now)
	for q.waiting.length > 0 && len(b.Entries) < room {
		e := q.waiting.first
		if e.state.Load() != open {
			q.waiting.pop()
			continue
		}
		// If nothing is in flight, the first call is sent in any case: its answer shows
		// how long an answer takes now.
		if len(q.inFlight)+len(b.Entries) > 0 && q.pace.tooLate(e.deadline+grace-now) {
			q.expire(q.waiting.pop())
			continue
		}
		if len(b.Entries) > 0 && b.bytes+e.size > mostBytes {
			break
		}
		b.Entries = append(b.Entries, q.waiting.pop())
		b.bytes += e.size
		b.latest = max(b.latest, e.due)
	}
	if len(b.Entries) == 0 {
		q.free = append(q.free, b)
		return nil
	}
	b.Deadline = q.began.Add(time.Duration(b.latest - 1))
	q.start(b, now, len(b.Entries))
	return b
}

func (q *Queue) newBatch() *Batch {
	if n := len(q.free); n > 0 {
		b := q.free[n-1]
		q.free = q.free[:n-1]
		return b
	}
	return new(Batch)
}

func (q *Queue) start(b *Batch, now int64, calls int) {
	b.sent = now
	q.inFlight = append(q.inFlight, b)
	q.calls += calls
	q.last, q.lastCalls = now, calls
}

// expire ends the wait of a call whose time is over.
func (q *Queue) expire(e *Entry) bool {
	c := e.Call
	c.Withdraw() // before its caller looks at it
	return e.end(expired)
}

// complete ends the waits for the calls in a batch that has returned.
func (q *Queue) complete(b *Batch, r Result) {
	q.finish(b, r, len(b.Entries))
	for i, e := range b.Entries {
		b.Entries[i] = nil
		e.end(answered)
	}
	*b = Batch{Entries: b.Entries[:0]}
	q.mu.Lock()
	q.free = append(q.free, b)
	q.mu.Unlock()
}

// finish notes that a batch is no longer in flight.
func (q *Queue) finish(b *Batch, r Result, calls int) {
	now := q.now()
	q.mu.Lock()
	lost := b.lost
	if !lost {
		q.inFlight = slices.DeleteFunc(q.inFlight, func(other *Batch) bool { return other == b })
		if r.Replied() {
			q.answered = now
			if q.turn.grace() == 0 { // otherwise the time says more about this process than about the server
				q.pace.returned(b.sent, now, calls, q.calls)
			}
		}
		q.calls -= calls
	}
	known := r == Ignored || lost && r != Answered // a late answer still counts
	if !known {
		q.learn(r)
	}
	q.mu.Unlock()
	if !known {
		q.server.Note(r, calls)
	}
}

func (q *Queue) learn(r Result) {
	switch r {
	case Answered, Unknown:
		q.state = alive
	case Unanswered:
		q.state = silent
		q.probe()
	case Unsent:
		if q.state == alive {
			q.state = unproven
		}
	}
}
