package gate

import (
	"context"
	"sync/atomic"
)

// An ending tells whether a handler has given up: it has returned without an answer
// because its context had ended, since the client went away, a deadline passed or a
// lock was lost. Frameworks make an empty 200 of that. Any other answer is the
// handler's own, and means what it says, whether or not the client still listens.
//
// A gate further in may give the handler a context that ends earlier than that of a
// gate outside. It says so to the gates outside by the ending that it finds in the
// request's context.
type ending struct {
	ctx     context.Context // of the handler
	further atomic.Bool     // the context of a gate further in had ended
	outside *ending
}

type endingKey struct{}

// watch returns the handler's context, which is ctx, with an ending in it.
func watch(ctx context.Context) (context.Context, *ending) {
	e := &ending{ctx: ctx}
	e.outside, _ = ctx.Value(endingKey{}).(*ending)
	return context.WithValue(ctx, endingKey{}, e), e
}

// gaveUp is for Leave, before the gate ends the context itself.
func (e *ending) gaveUp(reply *Reply) bool {
	if reply == nil || reply.Status != 200 || len(reply.Body) > 0 || reply.Partial {
		return false
	}
	ended := e.ctx.Err() != nil || e.further.Load()
	if ended && e.outside != nil {
		e.outside.further.Store(true)
	}
	return ended
}
