package lock

import (
	"slices"
	"sync"
)

// lines are the callers in this process that wait for a key, those of one
// owner in one line, and what this process has: whoever waits behind a lock of
// his own process need not ask Redis about it.
type lines struct {
	mu     sync.Mutex
	places map[string]*place
	spare  []*place // empty ones, to be used again: most locks have nobody wait
	came   uint64   // how many callers have joined a line
}

// spares is how many are kept.
const spares = 64

type place struct {
	waiting []*waiter     // as they came
	held    []string      // the lines that have a lock
	bell    chan struct{} // closed when it may be free; nil when nobody listens
	passed  int           // how often in a row it has gone on without being free
}

// waiter is somebody in a line. The first of each line asks Redis.
type waiter struct {
	of        *lines
	key, line string
	turn      chan struct{} // closed when it is the first
	gifts     chan gift     // of who has had the lock before
	number    uint64        // which of all who came
}

// now is the turn of who finds nobody before him.
var now = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (l *lines) join(key, line string) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.came++
	w := &waiter{of: l, key: key, line: line, turn: now, number: l.came}
	p := l.at(key)
	if p.first(line) != nil {
		w.turn = make(chan struct{})
	}
	if len(p.waiting)+len(p.held) > 0 {
		w.gifts = make(chan gift, 1)
	}
	p.waiting = append(p.waiting, w)
	return w
}

// leave returns what was given to the waiter, and not taken.
func (w *waiter) leave() (g gift, given bool) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	p := w.of.at(w.key)
	wasFirst := p.first(w.line) == w
	p.waiting = slices.DeleteFunc(p.waiting, func(other *waiter) bool { return other == w })
	if next := p.first(w.line); wasFirst && next != nil {
		close(next.turn)
	}
	w.of.clear(w.key, p)
	select {
	case g = <-w.gifts:
		return g, true
	default:
		return g, false
	}
}

// heir says whether the first in line may have the lock next without its being
// free in between, and which is the last who may: whoever comes later has not
// asked when it is granted.
func (l *lines) heir(key string) (last uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[key]
	if p == nil || len(p.waiting) == 0 || p.waiting[0].gifts == nil || p.waiting[0].line != "" || p.passed == mostPasses {
		return 0, false
	}
	p.passed++
	return l.came, true
}

// give hands the lock that this process has to the first in line.
func (l *lines) give(key string, g gift) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[key]
	if p == nil {
		return false
	}
	w := p.first("")
	if w == nil || w.gifts == nil || w.number > g.last {
		return false
	}
	select {
	case w.gifts <- g:
		return true
	default:
		return false
	}
}

// bell is closed when it makes sense to ask again.
func (w *waiter) bell() <-chan struct{} {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	p := w.of.at(w.key)
	if p.bell == nil {
		p.bell = make(chan struct{})
	}
	return p.bell
}

func (w *waiter) isFirst() bool {
	select {
	case <-w.turn:
		return true
	default:
		return false
	}
}

// busy says that this process has a lock which keeps the waiter out.
func (w *waiter) busy() bool {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	return slices.ContainsFunc(w.of.at(w.key).held, func(line string) bool { return line == "" || line != w.line })
}

func (l *lines) hold(key, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.at(key)
	p.held = append(p.held, line)
}

func (l *lines) free(key, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.at(key)
	if i := slices.Index(p.held, line); i >= 0 {
		p.held = slices.Delete(p.held, i, i+1)
	}
	p.passed = 0
	p.ring()
	l.clear(key, p)
}

// ring has those who are first ask.
func (l *lines) ring(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.places[key]; p != nil {
		p.ring()
	}
}

// size is how many callers wait, and how many locks this process has.
func (l *lines) size() (waiting, held int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.places {
		waiting, held = waiting+len(p.waiting), held+len(p.held)
	}
	return waiting, held
}

func (l *lines) at(key string) *place {
	p := l.places[key]
	if p == nil {
		if n := len(l.spare); n > 0 {
			p, l.spare = l.spare[n-1], l.spare[:n-1]
		} else {
			p = &place{}
		}
		if l.places == nil {
			l.places = map[string]*place{}
		}
		l.places[key] = p
	}
	return p
}

func (l *lines) clear(key string, p *place) {
	if len(p.waiting) == 0 && len(p.held) == 0 {
		delete(l.places, key)
		if len(l.spare) < spares {
			l.spare = append(l.spare, p)
		}
	}
}

func (p *place) first(line string) *waiter {
	for _, w := range p.waiting {
		if w.line == line {
			return w
		}
	}
	return nil
}

func (p *place) ring() {
	if p.bell != nil {
		close(p.bell)
		p.bell = nil
	}
}
