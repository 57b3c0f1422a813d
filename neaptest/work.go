package neaptest

import (
	"sync"
	"time"
)

// Work counts how often something is done, and how many times at once at most. A handler under
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

// Begin begins a run, which lasts until you call the function that it returns. While an assert of this package runs,
// Begin takes 50 ms. So two runs overlap if nothing keeps them apart: always in a bubble, and outside of one unless the
// machine is slower than that. Call Begin before you lock a mutex: in a bubble, the clock stands still while a goroutine
// waits for one.
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

// AtOnce is the largest number of runs that there were at one time.
func (w *Work) AtOnce() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// watched returns how many runs began while do ran, and the largest number of them at one time.
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
