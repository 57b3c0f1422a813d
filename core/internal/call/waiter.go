package call

import (
	"context"
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// waiters are contexts to wait with, kept for reuse. Under load, making a context with a
// deadline for each call costs as much as sending the call.
type waiters struct{ pool sync.Pool }

// waiter ends with the caller's context or with the budget. Only the goroutine that waits
// has it; a context that a client might keep is never used again.
type waiter struct {
	context.Context
	deadline time.Time
	woken    chan struct{} // holds one value, and is never closed
	wake     func()
	timer    *time.Timer
	unwatch  func() bool // nil if the caller's context cannot end
}

func (ws *waiters) get(call *budget) *waiter {
	left := time.Until(call.deadline)
	w, _ := ws.pool.Get().(*waiter)
	if w == nil {
		w = &waiter{woken: make(chan struct{}, 1)}
		w.wake = func() {
			select {
			case w.woken <- struct{}{}:
			default:
			}
		}
		w.timer = background.AfterFunc(left, w.wake)
	} else {
		w.timer.Reset(left)
	}
	w.Context, w.deadline = call.Context, call.deadline
	if w.Context.Done() != nil {
		w.unwatch = background.OnDone(w.Context, w.wake)
	}
	return w
}

// put ends the wait. It does not reuse a waiter that something may still wake.
func (ws *waiters) put(w *waiter) {
	quiet := w.timer.Stop()
	if w.unwatch != nil {
		quiet = w.unwatch() && quiet
	}
	if quiet {
		w.Context, w.unwatch = nil, nil
		ws.pool.Put(w)
	}
}

func (w *waiter) Deadline() (time.Time, bool) { return w.deadline, true }

func (w *waiter) Done() <-chan struct{} { return w.woken }

func (w *waiter) Err() error {
	if err := w.Context.Err(); err != nil {
		return err
	}
	if time.Now().Before(w.deadline) {
		return nil
	}
	return context.DeadlineExceeded
}
