package gate

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/neap-go/neap/core/idempotency"
)

// An ending tells whether a handler has given up: it returned without an answer because
// its context had ended. A context ends when the client goes away, when a deadline
// passes, or when a lock is lost. Frameworks send an empty 200 for such a handler. Any
// other answer is the handler's own and is taken as it is, whether or not the client
// still listens. A handler that has concluded its claim has not given up: it has said how it
// ended. One that has only released its lock has not said that.
//
// A gate further in may give the handler a context that ends earlier than that of a gate
// outside. It tells the gates outside through the ending that it finds in the request's
// context.
type ending struct {
	ctx     context.Context // of the handler
	further atomic.Bool     // set if the context of a gate further in had ended
	outside *ending
}

type endingKey struct{}

// watch returns ctx, the handler's context, with an ending in it.
func watch(ctx context.Context) (context.Context, *ending) {
	e := &ending{ctx: ctx}
	e.outside, _ = ctx.Value(endingKey{}).(*ending)
	return context.WithValue(ctx, endingKey{}, e), e
}

// gaveUp reports whether the handler gave up. Leave calls it before the gate itself ends
// the context.
func (e *ending) gaveUp(reply *Reply) bool {
	if reply == nil || reply.Status != 200 || len(reply.Body) > 0 || reply.Partial {
		return false
	}
	ended := e.ctx.Err() != nil && !errors.Is(context.Cause(e.ctx), idempotency.ErrConcluded) || e.further.Load()
	if ended && e.outside != nil {
		e.outside.further.Store(true)
	}
	return ended
}
