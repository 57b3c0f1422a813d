package callback

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/internal/misuse"
)

// drainEvery is how often Drain looks.
const drainEvery = 50 * time.Millisecond

// Drain waits until the handler has returned for all events of all deliveries, and until Redis
// has noted what became of them. It also waits while the guard looks for claims that Redis may
// have granted without an answer: for little more than a lease, once Redis answers. What the
// guard repeats or looks for on behalf of others counts too. Call it after the server's
// Shutdown, which waits for no handler that is past the deadline. Otherwise an event can be in
// doubt, or run again.
//
// Drain returns ctx.Err() if ctx ends first. It sends nothing.
func (e *Endpoint) Drain(ctx context.Context) error {
	misuse.Made(e != nil && e.guard != nil, errEndpoint)
	misuse.Context(ctx)
	for e.handling.Load() > 0 || unsettled(e.guard.Stats()) { // a delivery is counted until its conclusions are
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(drainEvery):
		}
	}
	return nil
}

func unsettled(s idempotency.Stats) bool { return s.Concluding+s.Undoing > 0 }
