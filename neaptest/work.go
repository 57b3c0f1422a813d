package neaptest

import (
	"sync"
	"time"
)

// Work counts how often something is done and how much of it at one time. A handler under
// test begins with
//
//	defer work.Begin()()
//
// The zero Work is ready for use, by several goroutines.
type Work struct {
	mu                  sync.Mutex
	runs, running, most int
	takes               time.Duration
}

// Begin counts a run, until the function that it returns is called. While an assert of this
// package runs, it takes 50 ms, so that runs which may overlap do: in a bubble always, and outside of one unless the
// machine is slower than that. Lock no mutex around it: in a bubble, time stands still while a goroutine waits for a mutex.
func (w *Work) Begin() (end func()) {
	w.mu.Lock()
	w.runs++
	w.running++
	w.most = max(w.most, w.running)
	takes := w.takes
	w.mu.Unlock()
	time.Sleep(takes)
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running--
	})
}

// Runs is how many runs have begun.
func (w *Work) Runs() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs
}

// AtOnce is how many runs there were at one time at most.
func (w *Work) AtOnce() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// watched returns how many runs there were, and how many at one time at most, while do ran.
func (w *Work) watched(do func()) (runs, atOnce int) {
	w.mu.Lock()
	before, most := w.runs, w.most
	w.most, w.takes = w.running, 50*time.Millisecond
	w.mu.Unlock()
	do()
	w.mu.Lock()
	defer w.mu.Unlock()
	runs, atOnce = w.runs-before, w.most
	w.most, w.takes = max(most, w.most), 0
	return runs, atOnce
}
