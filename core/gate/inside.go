package gate

import (
	"bytes"
	"context"
	"sync/atomic"
)

// inside is the context of a handler whose gate has to know of a refusal further
// in, since the handler may not have run then.
type inside struct {
	context.Context
	refusal atomic.Pointer[Reply]
}

func (i *inside) Value(key any) any {
	if key == (takenKey{}) {
		return i
	}
	return i.Context.Value(key)
}

func (i *inside) outside() context.Context { return i.Context }

func (i *inside) giveBack(_ Request, reply *Reply) { i.refusal.Store(reply) }

// refused says that what the client sees is the refusal of a gate further in,
// and no answer of a handler that made other requests with its context.
func (i *inside) refused(seen *Reply) bool {
	refusal := i.refusal.Load()
	if refusal == nil || seen == nil || seen.Partial {
		return false
	}
	sent := refusal.Sent()
	return seen.Status == sent.Status && bytes.Equal(seen.Body, sent.Body)
}
