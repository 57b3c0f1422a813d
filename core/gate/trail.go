package gate

import "context"

// taken is the handler's context behind a gate that took something for the
// request. By it a gate further in finds those that the request came through:
// not how they are mounted counts, but whose context the request has.
type taken interface {
	context.Context
	// giveBack returns what was taken, once, because a gate further in refuses
	// the request, which that gate sees as r, with that reply.
	giveBack(r Request, reply *Reply)
	// outside is the context of the gate's own request.
	outside() context.Context
}

// takenKey finds the innermost taken of a context.
type takenKey struct{}

// retrace gives back what the gates that r came through have taken, inner ones
// first. It waits for them one after the other: there is one, seldom two.
func retrace(r Request, reply *Reply) {
	for ctx := r.Context(); ; {
		t, ok := ctx.Value(takenKey{}).(taken)
		if !ok {
			return
		}
		t.giveBack(r, reply)
		ctx = t.outside()
	}
}
