package history

import (
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Diary is a history that is being made. It is safe for concurrent use.
type Diary struct {
	began time.Time

	mu       sync.Mutex
	ops      []porcupine.Operation
	answered int
}

// NewDiary begins a history.
func NewDiary() *Diary { return &Diary{began: time.Now()} }

// Now is the time in the history.
func (d *Diary) Now() int64 { return int64(time.Since(d.began)) }

// Add notes an operation that was called then and has ended now.
func (d *Diary) Add(worker int, input any, call int64, output any) {
	d.note(porcupine.Operation{ClientId: worker, Input: input, Call: call, Output: output, Return: d.Now()})
}

// Open notes an operation of which nobody knows when it happens, or whether it
// does, and returns its place.
func (d *Diary) Open(worker int, input any, call int64, output any) int {
	return d.note(porcupine.Operation{ClientId: worker, Input: input, Call: call, Output: output, Return: math.MaxInt64})
}

func (d *Diary) note(op porcupine.Operation) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if op.Return != math.MaxInt64 {
		d.answered++
	}
	d.ops = append(d.ops, op)
	return len(d.ops) - 1
}

// Close notes that the open operation at that place has happened by now, or that
// it did not.
func (d *Diary) Close(at int, happened bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops[at].Return = d.Now()
	if !happened {
		d.ops[at].Input = nil
	}
}

// Answered is how many operations were answered.
func (d *Diary) Answered() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answered
}

// Ops are the operations up to now.
func (d *Diary) Ops() (all []porcupine.Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range d.ops {
		if op.Input != nil {
			all = append(all, op)
		}
	}
	return all
}
