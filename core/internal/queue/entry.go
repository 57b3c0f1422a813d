package queue

import (
	"context"
	"sync/atomic"
	"time"
)

// Call is one call of one caller.
type Call interface {
	// Size returns about how many bytes are sent for it.
	Size() int
	// Key returns a key that tells which server gets the call.
	Key() string
	// Withdraw keeps the call from being sent, and reports whether it was in time: the
	// call was not written yet. It may be called again.
	Withdraw() bool
	// Due returns when the budget of the call ends. The call is short if the deadline of
	// its context is earlier: that is its caller's own.
	Due() time.Time
}

// Entry is a call in a queue. The server reads the exported fields; only the queue uses
// the others.
type Entry struct {
	Call    Call
	Context context.Context // of the caller; only its values are used

	next     *Entry
	size     int
	deadline int64 // by the queue's clock
	due      int64 // when its budget ends
	state    atomic.Uint32
	done     chan struct{} // gets one value when the wait ends, unless the caller has left
	failed   error         // why sending it did not return; nil if it did
}

// These are the states of an entry. It ends in one of the last three, once.
const (
	open     uint32 = iota
	answered        // the call has ended; its answer is in the Call
	expired         // its deadline passed first
	left            // its caller left first
)

// isShort reports whether the caller's own deadline ends the wait before the budget does.
// The end of such a wait says nothing about the server.
func (e *Entry) isShort() bool { return e.deadline < e.due }

// end wakes the caller, unless it has left.
func (e *Entry) end(how uint32) bool {
	if !e.state.CompareAndSwap(open, how) {
		return false
	}
	e.done <- struct{}{}
	return true
}

// wait returns when the call has ended or the caller has left. If the caller has left,
// its call may still be in flight.
func (e *Entry) wait(ctx context.Context) error {
	if ended := ctx.Done(); ended != nil {
		select {
		case <-e.done:
		case <-ended:
			if e.state.CompareAndSwap(open, left) {
				e.Call.Withdraw()
				return ctx.Err()
			}
			<-e.done
		}
	} else {
		<-e.done
	}
	if e.state.Load() == expired {
		return context.DeadlineExceeded
	}
	return nil
}

// list is entries in their order.
type list struct {
	first, last *Entry
	length      int
}

func (l *list) push(e *Entry) {
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.length++
}

func (l *list) pop() *Entry {
	e := l.first
	l.first, e.next = e.next, nil
	if l.first == nil {
		l.last = nil
	}
	l.length--
	return e
}

// drop removes each entry that the function selects.
func (l *list) drop(which func(*Entry) bool) {
	var kept list
	for l.length > 0 {
		if e := l.pop(); !which(e) {
			kept.push(e)
		}
	}
	*l = kept
}
