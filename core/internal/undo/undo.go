// Package undo takes back in the background what a script may have granted
// although nobody was told: a slot or a lock whose acquisition got no reply.
package undo

import (
	"sync"
	"sync/atomic"
	"time"
)

// Most is how many grants an Undoer looks for at a time, and abreast how many
// attempts it makes at once: a Redis that is slow or comes back is not met by all
// that failed meanwhile.
const (
	Most    = 1000
	abreast = 16
)

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

// sparser is how many attempts there are while the time for which Redis has said
// that there is nothing doubles, about: what is late by minutes may be found
// later by as many.
const sparser = 4

// Undoer looks for grants until it finds them or they have lapsed. Between two
// attempts there is no goroutine, only a timer. The zero Undoer is ready to
// use; it is safe for concurrent use, and must not be copied.
type Undoer struct {
	pending            atomic.Int64
	undone, overflowed atomic.Uint64

	mu      sync.Mutex
	running int
	due     []*search // for which there was no room
}

// Stats are what an Undoer does and has done.
type Stats struct {
	Pending    int    // grants that are looked for now
	Undone     uint64 // grants that were found
	Overflowed uint64 // grants that were not looked for, since Most were pending; they lapse
}

// Stats tells what the Undoer does and has done.
func (u *Undoer) Stats() Stats {
	return Stats{Pending: int(u.pending.Load()), Undone: u.undone.Load(), Overflowed: u.overflowed.Load()}
}

// Start returns at once and has attempt called now, after 0.1, 0.3 and 1 s and
// then every second, or ever more seldom while Redis says that there is nothing,
// one call at a time, until one is Done or finds nothing after a lease has
// passed since the grant was asked for. Whoever was asked but did not answer may
// have the question still before it, and so each attempt that is Unanswered puts
// that end off to a lease later.
//
// While Most grants are pending it calls nothing and returns false.
func (u *Undoer) Start(asked time.Time, lease time.Duration, attempt func() Result) bool {
	if u.pending.Add(1) > Most {
		u.pending.Add(-1)
		u.overflowed.Add(1)
		return false
	}
	u.enter(&search{undoer: u, attempt: attempt, lease: lease, open: asked, told: time.Now()})
	return true
}

// enter has the search's next attempt be made as soon as there is room.
func (u *Undoer) enter(s *search) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running == abreast {
		u.due = append(u.due, s)
		return
	}
	u.running++
	go func() {
		for s := s; s != nil; s = u.next() {
			s.step()
		}
	}()
}

// next is the search that has waited for the longest, or nil where none has.
func (u *Undoer) next() *search {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.due) == 0 {
		u.running--
		return nil
	}
	s := u.due[0]
	u.due = u.due[1:]
	return s
}

type search struct {
	undoer   *Undoer
	attempt  func() Result
	lease    time.Duration
	open     time.Time // when the grant was asked for, or Redis last did not answer
	told     time.Time // since when Redis has answered
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
		s.open = time.Now()
		s.told = s.open
	case Found:
		s.undoer.undone.Add(1)
	case Absent:
		if began.Sub(s.open) >= s.lease {
			s.undoer.pending.Add(-1)
			return
		}
	}
	pause := max(pauses[min(s.attempts, len(pauses)-1)], began.Sub(s.told)/sparser)
	s.attempts++
	time.AfterFunc(pause-time.Since(began), func() { s.undoer.enter(s) })
}
