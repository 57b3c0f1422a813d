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

// server is what the queue of a breaker sends with, as a [queue.Server]. Note is the
// breaker's.
type server struct {
	*breaker
	*wire.Sender
}

// newQueue returns the queue of a breaker. A lone caller sends its call by itself if honours
// says that the client ends calls at their deadlines.
func newQueue(b *breaker, client wire.Pipeliner, honours bool, budget time.Duration) *queue.Queue {
	return queue.New(server{b, wire.NewSender(client, honours, b.unknown)}, budget, honours)
}

// Probe asks the server whether it answers.
func (s server) Probe(key string, more time.Duration) queue.Result {
	return s.ask(key, min(s.budget, mostProbe)+more)
}

// Left asks the server in place of a call whose caller has left.
func (s server) Left(key string) { s.probe(key, s.budget) }

// unknown tells the node of a reply that is not known.
func (b *breaker) unknown(reply error) {
	b.failed.Store(b.node.unanswered(&script.Error{Class: script.ErrMaybeExecuted, Err: reply}, 1))
}
