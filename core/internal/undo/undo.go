// Package undo takes back in the background what a script may have granted
// although nobody was told: a slot or a lock whose acquisition got no reply.
package undo

import (
	"sync/atomic"
	"time"
)

// Most is how many grants an Undoer looks for at once.
const Most = 1000

// Result is what became of an attempt.
type Result uint8

// The results.
const (
	Absent     Result = iota // Redis has no such grant; the call that makes it may still be on its way
	Done                     // the grant is taken back, or can come no more
	Unanswered               // Redis did not say
	Found                    // the grant is taken back, and another call may make it again
)

// pauses are from the beginning of one attempt to the next; the last goes on.
var pauses = [...]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond, time.Second}

// Undoer looks for grants until it finds them or they have lapsed. Between two
// attempts there is no goroutine, only a timer. The zero Undoer is ready to
// use; it is safe for concurrent use, and must not be copied.
type Undoer struct {
	pending            atomic.Int64
	undone, overflowed atomic.Uint64
}

// Stats are what an Undoer does and has done.
type Stats struct {
	Pending    int    // grants that are looked for now
	Undone     uint64 // grants that were found
	Overflowed uint64 // grants that were looked for once and not found, since Most were pending; they lapse
}

// Stats tells what the Undoer does and has done.
func (u *Undoer) Stats() Stats {
	return Stats{Pending: int(u.pending.Load()), Undone: u.undone.Load(), Overflowed: u.overflowed.Load()}
}

// Start returns at once and has attempt called now, after 0.1, 0.3 and 1 s and
// then every second, one call at a time, until one is Done or finds nothing
// after a lease has passed since the grant was asked for. Whoever was asked but
// did not answer may have the question still before it, and so each attempt
// that is Unanswered puts that end off to a lease later.
//
// While Most grants are pending it has attempt called once, and returns false:
// most grants are there at once.
func (u *Undoer) Start(asked time.Time, lease time.Duration, attempt func() Result) bool {
	if u.pending.Add(1) > Most {
		u.pending.Add(-1)
		go func() {
			if result := attempt(); result == Done || result == Found {
				u.undone.Add(1)
			} else {
				u.overflowed.Add(1)
			}
		}()
		return false
	}
	s := &search{undoer: u, attempt: attempt, lease: lease, end: asked.Add(lease)}
	go s.step()
	return true
}

type search struct {
	undoer   *Undoer
	attempt  func() Result
	lease    time.Duration
	end      time.Time
	attempts int
}

func (s *search) step() {
	began := time.Now()
	switch s.attempt() {
	case Done:
		s.undoer.undone.Add(1)
		s.undoer.pending.Add(-1)
		return
	case Unanswered:
		s.end = time.Now().Add(s.lease)
	case Found:
		s.undoer.undone.Add(1)
	case Absent:
		if !began.Before(s.end) {
			s.undoer.pending.Add(-1)
			return
		}
	}
	pause := pauses[min(s.attempts, len(pauses)-1)]
	s.attempts++
	time.AfterFunc(pause-time.Since(began), s.step)
}
