package store

import (
	"context"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/queue"
	"github.com/neap-go/neap/core/internal/wire"
)

// ask calls a script that no server has. Any answer shows that the server of the key
// answers. It takes no longer than d.
func (b *breaker) ask(key string, d time.Duration) queue.Result {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	cmd := wire.NewProbe(ctx, key)
	asked := background.Start(func() error { // some clients do not end with ctx
		if err := b.calls.Process(ctx, cmd); err != nil {
			return err
		}
		return cmd.Err() // an AutoPipeliner answers here
	})
	select {
	case err := <-asked:
		r, unknown := cmd.Outcome(err)
		if unknown != nil {
			b.unknown(unknown)
		}
		return r
	case <-ctx.Done():
		return queue.Unanswered
	}
}

// probe finds out whether the server answers within the budget, after a caller that left
// earlier. Such a caller says nothing about the server. But if all callers have too little
// time, nothing else shows that the server is dead, or that it is back. probe runs in the
// background, one at a time, and asks nothing while the breaker lets no call through.
func (b *breaker) probe(key string, budget time.Duration) {
	if b.State() == gobreaker.StateOpen || !b.probing.CompareAndSwap(false, true) {
		return
	}
	background.Go(func() {
		defer b.probing.Store(false)
		r := b.ask(key, budget)
		switch r {
		case queue.Ignored:
			return
		case queue.Unanswered:
			r = queue.Unsent // the probe leaves no call in doubt
		case queue.Unsent:
			b.node.connect()
		default:
		}
		b.Note(r, 0)
	})
}
