// Package undo takes back in the background what a script may have granted
// although nobody was told: a slot or a lock whose acquisition got no reply.
package undo

import (
	"sync"
	"sync/atomic"
	"time"
)

// Most is the default Room, and spares is how many more grants may wait for a single
// attempt. Abreast is how many attempts run at once, so that a Redis that comes back
// is not met by all that failed meanwhile. At most silent of them are for a node that
// did not answer the last time, so that one node that is gone delays no other.
const (
	Most    = 100_000
	spares  = 1000
	abreast = 16
	silent  = 12
)

// breath is between two attempts for the silent: a server that refuses at once is
// not asked by thousands as fast as it can.
const breath = 10 * time.Millisecond

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
	// Room is how many grants are looked for at a time; 0 means Most.
	Room int
	// Total, if set, counts the grants that this and other Undoers look for now.
	Total *atomic.Int64

	pending, spare     atomic.Int64
	undone, overflowed atomic.Uint64

	mu           sync.Mutex
	running      int
	unheard      int       // of the running
	due, another []*search // for which there was no room; another were not answered the last time
}

// Stats are what an Undoer does and has done.
type Stats struct {
	Pending    int    // grants that are looked for now
	Undone     uint64 // grants that were found
	Overflowed uint64 // grants that were looked for once at the most and not found, since there was no room; what has a lease lapses
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
// Where there is no room it has attempt called once at the most, and returns
// false: most grants are there at once.
func (u *Undoer) Start(asked time.Time, lease time.Duration, attempt func() Result) bool {
	return u.start(asked, lease, attempt, false)
}

// Keep is Start for a grant that would never lapse: there is always room for it.
// So whoever is to ask for such a grant asks Full before.
func (u *Undoer) Keep(asked time.Time, lease time.Duration, attempt func() Result) bool {
	return u.start(asked, lease, attempt, true)
}

// Full says that there is no more room.
func (u *Undoer) Full() bool { return u.pending.Load() >= u.room() }

func (u *Undoer) room() int64 {
	if u.Room > 0 {
		return int64(u.Room)
	}
	return Most
}

func (u *Undoer) start(asked time.Time, lease time.Duration, attempt func() Result, keep bool) bool {
	s := &search{undoer: u, attempt: attempt, lease: lease, open: asked, told: time.Now()}
	if u.pending.Add(1) > u.room() && !keep {
		u.pending.Add(-1)
		if s.once = true; u.spare.Add(1) > spares {
			u.spare.Add(-1)
			u.overflowed.Add(1)
			return false
		}
	}
	u.total(1)
	u.enter(s)
	return !s.once
}

func (u *Undoer) total(n int64) {
	if u.Total != nil {
		u.Total.Add(n)
	}
}

// enter has the search's next attempt be made as soon as there is room.
func (u *Undoer) enter(s *search) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.due = time.Now()
	if s.unheard {
		u.another = append(u.another, s)
	} else {
		u.due = append(u.due, s)
	}
	if u.running < abreast {
		u.running++
		go u.run()
	}
}

func (u *Undoer) run() {
	for s, unheard := u.next(false); s != nil; s, unheard = u.next(unheard) {
		if s.step() == Unanswered && unheard {
			time.Sleep(breath)
		}
	}
}

// next is the search that has waited for the longest, or nil where none may be
// made; was says that the one before it was of the unheard.
func (u *Undoer) next(was bool) (s *search, unheard bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if was {
		u.unheard--
	}
	switch {
	case len(u.due) > 0:
		s, u.due = u.due[0], u.due[1:]
		return s, false
	case len(u.another) > 0 && u.unheard < silent:
		s, u.another = u.another[0], u.another[1:]
		u.unheard++
		return s, true
	}
	u.running--
	return nil, false
}

type search struct {
	undoer   *Undoer
	attempt  func() Result
	once     bool
	lease    time.Duration
	open     time.Time // when the grant was asked for, or Redis last did not answer
	told     time.Time // since when Redis has answered
	due      time.Time // when the next attempt was
	unheard  bool      // the last attempt was
	attempts int
}

func (s *search) step() Result {
	u, began := s.undoer, time.Now()
	waited := began.Sub(s.due) // in which Redis was not asked
	s.open, s.told = s.open.Add(waited), s.told.Add(waited)
	result := s.attempt()
	if result == Done || result == Found {
		u.undone.Add(1)
	} else if s.once {
		u.overflowed.Add(1)
	}
	switch {
	case s.once:
		u.spare.Add(-1)
		u.total(-1)
		return result
	case result == Done, result == Absent && began.Sub(s.open) >= s.lease:
		u.pending.Add(-1)
		u.total(-1)
		return result
	}
	if s.unheard = result == Unanswered; s.unheard {
		s.open = time.Now()
		s.told = s.open
	}
	pause := max(pauses[min(s.attempts, len(pauses)-1)], began.Sub(s.told)/sparser)
	s.attempts++
	time.AfterFunc(pause-time.Since(began), func() { u.enter(s) })
	return result
}
