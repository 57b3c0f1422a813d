package adapter

import (
	"context"
	"sync"
	"time"

	"github.com/neap-go/neap/core/gate"
)

// Borrow returns q with a context that has the same values, deadline and end, and a
// function end that the adapter calls when the request is over. From then on the context
// has no values, and does not touch the framework any more. Several goroutines may use
// both at once.
//
// It is for a context that reads an object which the framework uses again for other
// requests, such as *fasthttp.RequestCtx or *gin.Context. What a gate derives from a
// context can outlive the request: the handler of a callback that runs on after its
// deadline, or the release of a lock.
func Borrow(q gate.Request) (borrowed gate.Request, end func()) {
	ctx := &lent{from: q.Context()}
	ctx.deadline, ctx.limited = ctx.from.Deadline()
	ctx.done = ctx.from.Done()
	return &borrower{q, ctx}, ctx.end
}

type borrower struct {
	gate.Request
	ctx *lent
}

func (b *borrower) Context() context.Context { return b.ctx }
func (b *borrower) Unwrap() gate.Request     { return b.Request }

// lent is a context whose values end with the request.
type lent struct {
	deadline time.Time
	limited  bool
	done     <-chan struct{}

	mu   sync.RWMutex
	from context.Context // nil when the request is over
	err  error           // the error of from, if from ended before the request was over
}

func (l *lent) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from != nil {
		l.err, l.from = l.from.Err(), nil
	}
}

func (l *lent) Deadline() (time.Time, bool) { return l.deadline, l.limited }
func (l *lent) Done() <-chan struct{}       { return l.done }

func (l *lent) Err() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	switch {
	case l.from != nil:
		return l.from.Err()
	case l.err != nil:
		return l.err
	}
	select {
	case <-l.done:
		return context.Canceled
	default:
		return nil
	}
}

func (l *lent) Value(key any) any {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.from == nil {
		return nil
	}
	return l.from.Value(key)
}
