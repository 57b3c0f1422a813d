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
}

// spares is how many are kept.
const spares = 64

type place struct {
	waiting []*waiter     // as they came
	held    []string      // the lines that have a lock
	bell    chan struct{} // closed when it may be free; nil when nobody listens
}

// waiter is somebody in a line. The first of each line asks Redis.
type waiter struct {
	of        *lines
	key, line string
	turn      chan struct{} // closed when it is the first
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
	w := &waiter{of: l, key: key, line: line, turn: now}
	p := l.at(key)
	if p.first(line) != nil {
		w.turn = make(chan struct{})
	}
	p.waiting = append(p.waiting, w)
	return w
}

func (w *waiter) leave() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	p := w.of.at(w.key)
	wasFirst := p.first(w.line) == w
	p.waiting = slices.DeleteFunc(p.waiting, func(other *waiter) bool { return other == w })
	if next := p.first(w.line); wasFirst && next != nil {
		close(next.turn)
	}
	w.of.clear(w.key, p)
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
