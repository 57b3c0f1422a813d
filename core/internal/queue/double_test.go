package queue

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	trip   = time.Millisecond
	budget = 50 * time.Millisecond
)

// double is a server that answers after a round trip, unless it is stopped.
type double struct {
	mu      sync.Mutex
	sizes   []int // of the batches that were sent
	notes   map[Result]int
	probes  int
	alone   int           // calls that went by themselves
	left    int           // callers of these that left
	holds   chan struct{} // while it is not nil, nothing is written until it is closed
	stopped chan struct{} // while it is not nil, answers wait until it is closed
	slower  time.Duration // what answers take longer than a round trip
	result  Result        // of a batch; the zero value stands for Answered
	ends    func()        // Send calls it and does not return; nil if it returns
	answer  Result        // to a probe; the zero value stands for Answered
}

func (d *double) Send(b *Batch) Result {
	d.mu.Lock()
	d.sizes = append(d.sizes, len(b.Entries))
	holds, stopped, result, slower, ends := d.holds, d.stopped, d.result, d.slower, d.ends
	d.mu.Unlock()
	if ends != nil {
		ends()
	}
	if holds != nil {
		<-holds
	}
	for _, e := range b.Entries {
		if result != Unsent {
			e.Call.(*call).state.CompareAndSwap(unsent, written)
		}
	}
	if stopped != nil {
		<-stopped
	}
	time.Sleep(trip + slower)
	return max(result, Answered)
}

// SendLone answers after a round trip, unless the server is stopped: then it waits for the end
// of the call.
func (d *double) SendLone(ctx context.Context, c Call) Result {
	d.mu.Lock()
	d.alone++
	stopped, holds := d.stopped, d.holds
	d.mu.Unlock()
	if holds != nil {
		<-holds
	}
	c.(*call).state.CompareAndSwap(unsent, written)
	if stopped != nil {
		<-ctx.Done()
		return Unanswered
	}
	time.Sleep(trip)
	return Answered
}

func (d *double) Left(string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left++
}

func (d *double) Note(r Result, _ int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.notes == nil {
		d.notes = map[Result]int{}
	}
	d.notes[r]++
}

func (d *double) Probe(_ string, more time.Duration) Result {
	d.mu.Lock()
	d.probes++
	stopped, answer, slower := d.stopped, d.answer, d.slower
	d.mu.Unlock()
	if stopped != nil {
		time.Sleep(budget)
		return Unanswered
	}
	time.Sleep(min(trip+slower, budget+more))
	if trip+slower > budget+more {
		return Unanswered
	}
	return max(answer, Answered)
}

func (d *double) sent() (sizes []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(sizes, d.sizes...)
}

func (d *double) noted(r Result) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.notes[r]
}

func (d *double) probed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.probes
}

// stop makes answers wait, and hold makes calls wait before they are written, until the
// returned function is called.
func (d *double) stop() (resume func()) { return d.wait(&d.stopped) }
func (d *double) hold() (resume func()) { return d.wait(&d.holds) }

func (d *double) wait(at *chan struct{}) (resume func()) {
	ended := make(chan struct{})
	d.set(func() { *at = ended })
	return func() {
		close(ended)
		d.set(func() { *at = nil })
	}
}

func (d *double) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// inBubble runs a test on a queue of the server, in virtual time.
func inBubble(t *testing.T, d *double, run func(t *testing.T, d *double, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer settle()
		run(t, d, New(d, budget, false))
	})
}

// settle lets what is in flight return, because the time of a bubble stops when its test
// has ended.
func settle() { time.Sleep(time.Minute) }
