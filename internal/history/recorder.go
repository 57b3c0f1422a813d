package history

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// A key is asked about until there are so many operations on it. What the checker
// takes grows by a power with those that were left open, and how many are depends
// on how busy the machine is.
const (
	opsPerKey  = 50
	openPerKey = 6
)

// Recorder records one history. It is safe for concurrent use.
type Recorder struct {
	began time.Time
	over  atomic.Bool

	mu       sync.Mutex
	ops      []porcupine.Operation
	answered int
	keys     map[int]string
	on       map[string]*load // by key
}

// load is what there is on a key.
type load struct{ asked, open int }

// NewRecorder begins a history.
func NewRecorder() *Recorder {
	return &Recorder{began: time.Now(), keys: map[int]string{}, on: map[string]*load{}}
}

// Now is the time in the history.
func (d *Recorder) Now() int64 { return int64(time.Since(d.began)) }

// Key is the nth of the keys that are asked about now, for one operation.
func (d *Recorder) Key(n int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, ok := d.keys[n]
	if !ok || d.on[key].asked == opsPerKey || d.on[key].open >= openPerKey {
		key = fmt.Sprintf("key%d", len(d.on))
		d.keys[n], d.on[key] = key, &load{}
	}
	d.on[key].asked++
	return key
}

// Add notes an operation that was called then and has ended now.
func (d *Recorder) Add(worker int, input any, call int64, output any) {
	d.note(porcupine.Operation{ClientId: worker, Input: input, Call: call, Output: output, Return: d.Now()})
}

// Open notes an operation of which nobody knows when it happens, or whether it
// does, and returns its place.
func (d *Recorder) Open(worker int, input any, call int64, output any) int {
	return d.note(porcupine.Operation{ClientId: worker, Input: input, Call: call, Output: output, Return: math.MaxInt64})
}

func (d *Recorder) note(op porcupine.Operation) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if op.Return != math.MaxInt64 {
		d.answered++
	} else if on := d.on[op.Input.(Keyed).OfKey()]; on != nil {
		on.open++
	}
	d.ops = append(d.ops, op)
	return len(d.ops) - 1
}

// Close notes that the open operation at that place has happened by now, or that
// it did not.
func (d *Recorder) Close(at int, happened bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops[at].Return = d.Now()
	if !happened {
		if on := d.on[d.ops[at].Input.(Keyed).OfKey()]; on != nil {
			on.open--
		}
		d.ops[at].Input = nil
	}
}

// Answered is how many operations were answered.
func (d *Recorder) Answered() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answered
}

// Ops are the operations up to now.
func (d *Recorder) Ops() (all []porcupine.Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range d.ops {
		if op.Input != nil {
			all = append(all, op)
		}
	}
	return all
}
