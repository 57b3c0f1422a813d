package store

import (
	"time"

	"github.com/neap-go/neap/core/internal/queue"
	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// mostProbe is the longest time that a probe waits, however large the budget is: its
// connection may be dead.
const mostProbe = 5 * time.Second

// transport is what the queue of a breaker sends with, as a [queue.Server]. Note is the
// breaker's.
type transport struct {
	*breaker
	*wire.Sender
}

// newQueue returns the queue of a breaker. A lone caller sends its call by itself if timely
// says that the client ends calls at their deadlines.
func newQueue(b *breaker, client wire.Pipeliner, timely bool, budget time.Duration) *queue.Queue {
	return queue.New(transport{b, wire.NewSender(client, timely, b.unknown)}, budget, timely)
}

// Probe asks the server whether it answers.
func (t transport) Probe(key string, more time.Duration) queue.Result {
	return t.ask(key, min(t.budget, mostProbe)+more)
}

// Left asks the server in place of a call whose caller has left.
func (t transport) Left(key string) { t.probe(key, t.budget) }

// unknown tells the node of a reply that is not known.
func (b *breaker) unknown(reply error) {
	b.failed.Store(b.node.unanswered(&script.Error{Class: script.ErrMaybeExecuted, Err: reply}, 1))
}
