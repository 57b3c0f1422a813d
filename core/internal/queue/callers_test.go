package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// call is a caller's call.
type call struct {
	size  int
	due   time.Time // that of the context if it is zero
	state atomic.Uint32
}

const (
	unsent uint32 = iota
	written
	withdrawn
)

func (c *call) Key() string { return "k" }
func (c *call) Size() int   { return c.size }
func (c *call) Withdraw() bool {
	return c.state.CompareAndSwap(unsent, withdrawn) || c.state.Load() == withdrawn
}
func (c *call) Due() time.Time { return c.due }

// within returns a context with a deadline and no timer.
type within struct {
	context.Context
	deadline time.Time
}

func (w within) Deadline() (time.Time, bool) { return w.deadline, true }

func withBudget(ctx context.Context) context.Context {
	return within{ctx, time.Now().Add(budget)}
}

// asked is how some calls ended.
type asked struct {
	mu    sync.Mutex
	wg    sync.WaitGroup
	calls []*call
	errs  map[error]int // of calls that were not sent
	doubt int           // calls that may have run
	took  time.Duration // at most
}

// ask has n callers ask at once.
func (a *asked) ask(ctx context.Context, q *Queue, n, size int) {
	if a.errs == nil {
		a.errs = map[error]int{}
	}
	for range n {
		a.wg.Go(func() {
			c, began := &call{size: size}, time.Now()
			err := q.Do(withBudget(ctx), c)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.calls = append(a.calls, c)
			a.took = max(a.took, time.Since(began))
			if err != nil && c.state.Load() == written {
				a.doubt++
				return
			}
			a.errs[err]++
		})
	}
}

// answers gets the first answer for a queue.
func answers(t *testing.T, q *Queue) {
	t.Helper()
	if err := q.Do(withBudget(t.Context()), new(call)); err != nil {
		t.Fatalf("a first call: got %v, want no error", err)
	}
}
