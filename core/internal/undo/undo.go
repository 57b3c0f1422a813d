// Package undo takes back in the background what a lost reply may have granted, and
// repeats conclusions that Redis did not confirm.
package undo

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// Most is the default Room. spares is how many more grants may wait for a single attempt.
// parallel is how many attempts run at once, so that a Redis that comes back is not
// flooded by all that failed meanwhile. At most silent of them are for nodes that did not
// answer the last time, so that one dead node does not delay the others.
const (
	Most     = 100_000
	spares   = 1000
	parallel = 16
	silent   = 12
)

// silentPause is the pause between two attempts for silent nodes, so that a server that
// refuses immediately is not asked thousands of times a second.
const silentPause = 10 * time.Millisecond

// Result is how an attempt ended.
type Result uint8

// These are the results.
const (
	Absent     Result = iota // Redis has no such grant; the call that makes it may still be on its way
	Done                     // the grant is taken back, or can no longer come
	Unanswered               // Redis did not say
	Found                    // the grant is taken back, and another call may make it again
	Refused                  // Redis refuses to say, until its operator changes something
)

// pauses are the times from the beginning of one attempt to the next. The last one
// repeats.
var pauses = [...]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond, time.Second}

// sparser makes attempts rarer the longer Redis finds nothing: the pause is that time
// divided by sparser. So a grant that comes minutes late may be found minutes later.
const sparser = 4

// Undoer looks for grants until it finds them or they have lapsed. Between two attempts
// there is no goroutine, only a timer. The zero Undoer is ready to use. It is safe for
// concurrent use, and must not be copied.
type Undoer struct {
	// Room is how many grants are looked for at a time. 0 means Most.
	Room int
	// Total, if set, counts the grants that this and other Undoers look for now.
	Total *atomic.Int64

	pending, spare             atomic.Int64
	undone, overflowed, lapsed atomic.Uint64

	mu         sync.Mutex
	running    int
	unanswered int       // attempts that run for searches in late
	due, late  []*search // searches that wait for room; those in late had no answer the last time
}

// Stats are what an Undoer is doing and has done.
type Stats struct {
	Pending    int    // grants that are looked for now
	Undone     uint64 // grants that were found
	Overflowed uint64 // grants that were looked for at most once and not found, because there was no room; a lease lapses
	Lapsed     uint64 // grants that were not found before they lapsed
}

// Stats returns what the Undoer is doing and has done.
func (u *Undoer) Stats() Stats {
	return Stats{Pending: int(u.pending.Load()), Undone: u.undone.Load(), Overflowed: u.overflowed.Load(), Lapsed: u.lapsed.Load()}
}

// Start returns immediately and calls attempt in the background: now, after 0.1, 0.3 and
// 1 s, then every second, and less often while Redis finds nothing. It calls one attempt
// at a time. It ends when an attempt is Done. It also ends when an attempt finds nothing
// and a lease has passed since the grant was asked for. A server that did not answer may
// still run what it was asked, so after each Unanswered attempt that end is a lease
// later.
//
// If there is no room, Start calls attempt at most once and returns false. Most grants
// are found by the first attempt.
func (u *Undoer) Start(asked time.Time, lease time.Duration, attempt func() Result) bool {
	return u.start(asked, lease, attempt, false, nil)
}

// Keep is Start for a grant that would never lapse. There is always room for it, so check
// Full before you ask for such a grant. It does not end while attempts are Refused, either;
// Start then ends as if they were Absent.
func (u *Undoer) Keep(asked time.Time, lease time.Duration, attempt func() Result) bool {
	return u.start(asked, lease, attempt, true, nil)
}

// Telling returns Start, or Keep, for a caller that has to know if the search ends without
// a result. Then dropped is called once.
func (u *Undoer) Telling(keep bool, dropped func()) func(asked time.Time, lease time.Duration, attempt func() Result) bool {
	return func(asked time.Time, lease time.Duration, attempt func() Result) bool {
		return u.start(asked, lease, attempt, keep, dropped)
	}
}

// Full reports whether there is no room left.
func (u *Undoer) Full() bool { return u.pending.Load() >= u.room() }

func (u *Undoer) room() int64 {
	if u.Room > 0 {
		return int64(u.Room)
	}
	return Most
}

func (u *Undoer) start(asked time.Time, lease time.Duration, attempt func() Result, keep bool, dropped func()) bool {
	s := &search{undoer: u, attempt: attempt, dropped: dropped, keep: keep, lease: lease, open: asked, told: time.Now()}
	if u.pending.Add(1) > u.room() && !keep {
		u.pending.Add(-1)
		if s.once = true; u.spare.Add(1) > spares {
			u.spare.Add(-1)
			s.drop(&u.overflowed)
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

// enter queues the next attempt of a search.
func (u *Undoer) enter(s *search) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.due = time.Now()
	if s.unanswered {
		u.late = append(u.late, s)
	} else {
		u.due = append(u.due, s)
	}
	if u.running < parallel {
		u.running++
		background.Go(u.run)
	}
}

func (u *Undoer) run() {
	for s, unanswered := u.next(false); s != nil; s, unanswered = u.next(unanswered) {
		if s.step() == Unanswered && unanswered {
			time.Sleep(silentPause)
		}
	}
}

// next returns the search that has waited longest, or nil if none may run now. was says
// that the search before it was among the unanswered.
func (u *Undoer) next(was bool) (s *search, unanswered bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if was {
		u.unanswered--
	}
	switch {
	case len(u.due) > 0:
		s, u.due = pop(u.due)
		return s, false
	case len(u.late) > 0 && u.unanswered < silent:
		s, u.late = pop(u.late)
		u.unanswered++
		return s, true
	}
	u.running--
	return nil, false
}

// pop takes the first search of a queue. The queue's array does not keep it: what a search is
// about may be large.
func pop(queue []*search) (*search, []*search) {
	s := queue[0]
	queue[0] = nil
	return s, queue[1:]
}

type search struct {
	undoer     *Undoer
	attempt    func() Result
	dropped    func() // nil if no caller has to know
	once       bool
	keep       bool
	lease      time.Duration
	open       time.Time // when the grant was asked for, or when Redis last did not answer
	told       time.Time // since when Redis has answered
	due        time.Time // when the next attempt was due
	unanswered bool      // the last attempt was Unanswered
	attempts   int
}

// drop ends a search without a result.
func (s *search) drop(count *atomic.Uint64) {
	count.Add(1)
	if s.dropped != nil {
		s.dropped()
	}
}

func (s *search) step() Result {
	u, began := s.undoer, time.Now()
	waited := began.Sub(s.due) // during this time Redis was not asked
	s.open, s.told = s.open.Add(waited), s.told.Add(waited)
	result := Unanswered // if the attempt does not return
	_ = background.Try(func() error {
		result = s.attempt()
		return nil
	})
	if result == Done || result == Found {
		u.undone.Add(1)
	} else if s.once {
		s.drop(&u.overflowed)
	}
	switch {
	case s.once:
		u.spare.Add(-1)
		u.total(-1)
		return result
	case result == Done, (result == Absent || result == Refused && !s.keep) && began.Sub(s.open) >= s.lease:
		if result != Done {
			s.drop(&u.lapsed)
		}
		u.pending.Add(-1)
		u.total(-1)
		return result
	}
	if s.unanswered = result == Unanswered; s.unanswered {
		s.open = time.Now()
		s.told = s.open
	}
	pause := max(pauses[min(s.attempts, len(pauses)-1)], began.Sub(s.told)/sparser)
	s.attempts++
	background.AfterFunc(pause-time.Since(began), func() { u.enter(s) })
	return result
}
