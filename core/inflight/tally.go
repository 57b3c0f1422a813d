package inflight

import (
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/token"
)

// tally is what this process holds, by subject. The zero tally is ready to use. Its mutex
// also guards the fields of a Slot that change.
type tally struct {
	mu     sync.Mutex
	all    int
	n      map[string]*holding
	losses int // counts how often Redis may have lost slots that are held
}

// holding is what this process holds of one subject.
type holding struct {
	n         int64
	slots     []*Slot // those that Redis should count
	uncounted int     // how many of these Redis may not count
}

func (t *tally) add(subject string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.increment(subject)
}

// addBelow adds one to a subject, unless the limit is reached. It returns how many there
// are then.
func (t *tally) addBelow(subject string, limit int64) (n int64, added bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.count(subject); n >= limit {
		return n, false
	}
	return t.increment(subject), true
}

func (t *tally) increment(subject string) int64 {
	h := t.n[subject]
	if h == nil {
		if t.n == nil {
			t.n = make(map[string]*holding)
		}
		h = &holding{}
		t.n[subject] = h
	}
	h.n++
	t.all++
	return h.n
}

func (t *tally) count(subject string) int64 {
	if h := t.n[subject]; h != nil {
		return h.n
	}
	return 0
}

// keep stores a slot that was added and that Redis should count.
func (t *tally) keep(s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.append(s, token.New(), false)
}

// append stores a slot and starts its renewals.
func (t *tally) append(s *Slot, token string, counted bool) {
	h := t.n[s.subject]
	s.token, s.counted, s.at = token, counted, len(h.slots)
	if !counted {
		h.uncounted++
	}
	h.slots = append(h.slots, s)
	now, length := time.Now(), s.of.opts.Lease
	s.member.Of = s
	s.of.lease.wheel.Add(&s.member, renewed{s.of}, s.key, length, now.Add(lease.Pause(length, counted)), now.Add(length))
}

// witnesses returns slots of a subject that Redis should have, if there are any, and the
// number of losses.
func (t *tally) witnesses(subject string) (losses int, w witnesses) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.n[subject]; h != nil && len(h.slots) > 0 {
		w = witnesses{h.slots[len(h.slots)-1].token, h.slots[0].token}
	}
	return t.losses, w
}

// admit keeps a slot that Redis granted. It returns false if Redis may not count all that
// is held of the subject: because Redis has neither witness, or because a loss was noted
// since the question was sent. The caller then restores. Every slot that is held and
// counted was granted, or taken again, after the last loss. So one witness that Redis has
// is proof for all.
func (t *tally) admit(s *Slot, granted string, losses int, lost bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.n[s.subject]
	if lost && h != nil {
		t.suspect(h)
	}
	if t.losses != losses || h != nil && h.uncounted > 0 {
		return false
	}
	t.increment(s.subject)
	t.append(s, granted, true)
	return true
}

// remove marks a slot as released. first is false if it was released before. token is
// empty if Redis need not be told.
func (t *tally) remove(s *Slot) (token string, in ask.Doubt, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.released {
		return "", ask.Doubt{}, false
	}
	s.released = true
	h := t.n[s.subject]
	if s.token != "" {
		s.of.lease.wheel.Remove(&s.member)
		last := len(h.slots) - 1
		h.slots[s.at], h.slots[last].at = h.slots[last], s.at
		h.slots[last], h.slots = nil, h.slots[:last]
		if !s.counted {
			h.uncounted--
		}
	}
	t.all--
	if h.n--; h.n == 0 {
		delete(t.n, s.subject)
	}
	if s.counted || s.maybe || s.doubt.Calls > 0 {
		token = s.token
	}
	return token, s.doubt, true
}

// gone notes that Redis does not have slots of one subject, and returns those of them that
// are still held. If there are any, Redis may have lost all slots of the subject.
func (t *tally) gone(slots []*Slot) (held []*Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range slots {
		if !s.released {
			held = append(held, s)
		}
	}
	if len(held) > 0 {
		t.suspect(t.n[held[0].subject])
	}
	return held
}

func (t *tally) suspect(h *holding) {
	for _, s := range h.slots {
		if s.counted {
			s.counted, s.maybe = false, true
		}
	}
	h.uncounted = len(h.slots)
	t.losses++
}

// toCount returns up to most slots of a subject that Redis may not count, and the number
// of losses.
func (t *tally) toCount(subject string, most int) (losses int, some []*Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.n[subject]
	if h == nil || h.uncounted == 0 {
		return t.losses, nil
	}
	for _, s := range h.slots {
		if !s.counted && len(some) < most {
			some = append(some, s)
		}
	}
	return t.losses, some
}

// look returns what is known of a slot.
func (t *tally) look(s *Slot) (counted, released bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.counted, s.released
}

// noted returns the number of losses.
func (t *tally) noted() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.losses
}

// learn stores whether Redis had the slot when so many losses had been noted. If err is set,
// nothing is known. It reports whether the slot was released meanwhile.
func (t *tally) learn(s *Slot, losses int, there bool, err error, in ask.Doubt) (released bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.doubt.Add(in)
	switch {
	case err != nil:
		s.maybe = s.maybe || in.Calls > 0
		return s.released
	case there && losses != t.losses: // it may have been lost since
		s.maybe = true
		return s.released
	case there != s.counted && !s.released:
		if there {
			t.n[s.subject].uncounted--
		} else {
			t.n[s.subject].uncounted++
		}
	}
	s.counted, s.maybe = there, false
	return s.released
}

func (t *tally) of(subject string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count(subject)
}

func (t *tally) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}
