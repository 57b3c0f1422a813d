package wire

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/queue"
)

// lateAnswer is how much longer than its callers a batch waits for its answer, if the
// client has ContextTimeoutEnabled. Otherwise the client's ReadTimeout counts. A late
// answer shows that the server lives, and keeps the connection.
const lateAnswer = time.Second

// mostKeys is how many keys a merged call has at most. With more, each decision takes
// longer again.
const mostKeys = 16

// Pipeliner is a client that sends several commands at once.
type Pipeliner interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// Sender sends commands that a queue has gathered, merged where they can be. It is safe for
// concurrent use.
type Sender struct {
	client  Pipeliner
	honours bool              // the client ends commands at their deadlines
	unknown func(reply error) // is told of each reply that is not known
	memory  sync.Pool         // of *batch
	keys    atomic.Int64      // how many keys a merged call may have
	refused sync.Map          // see Merger.Unloaded
}

// NewSender makes a Sender. honours says that the client ends commands at their deadlines.
// unknown is told of each reply that is neither a script's nor a server's.
func NewSender(client Pipeliner, honours bool, unknown func(reply error)) *Sender {
	s := &Sender{client: client, honours: honours, unknown: unknown}
	s.keys.Store(1)
	if _, plain := client.(*redis.Client); plain { // other clients choose the server by the key
		s.keys.Store(mostKeys)
	}
	return s
}

// SendLone sends the command of a lone caller, whose context ends it.
func (s *Sender) SendLone(ctx context.Context, c queue.Call) queue.Result {
	cmd := c.(*Command)
	return s.result(cmd, background.Process(ctx, s.client, cmd))
}

// Send sends a batch.
func (s *Sender) Send(b *queue.Batch) queue.Result {
	ctx := &batchContext{values: context.Background(), deadline: b.Deadline.Add(lateAnswer)}
	if len(b.Entries) == 1 {
		if !s.honours {
			background.NoDeadlines()
		}
		ctx.values = b.Entries[0].Context
		return s.SendLone(ctx, b.Entries[0].Call)
	}
	m, _ := s.memory.Get().(*batch)
	if m == nil {
		m = &batch{Merger: Merger{Unloaded: &s.refused}}
	}
	m.send(ctx, s, b)
	s.memory.Put(m)
	var results queue.Results
	for _, e := range b.Entries {
		results.Add(s.result(e.Call.(*Command), nil))
	}
	return results.Batch()
}

// result returns how a command ended.
func (s *Sender) result(cmd *Command, sent error) queue.Result {
	r, unknown := cmd.Outcome(sent)
	if unknown != nil {
		s.unknown(unknown)
	}
	return r
}

// batch is the memory that sending a batch needs.
type batch struct {
	Merger

	calls []*Command
}

// send merges the calls of a batch and sends the merged calls.
func (m *batch) send(ctx context.Context, s *Sender, b *queue.Batch) {
	m.calls = m.calls[:0]
	for _, e := range b.Entries {
		m.calls = append(m.calls, e.Call.(*Command))
	}
	most := int(s.keys.Load())
	for out := m.Merge(ctx, m.calls, most); len(out) > 0; {
		if len(out) == 1 {
			stamp(background.Process(ctx, s.client, out[0]), out...)
		} else {
			stamp(s.exec(ctx, out), out...)
		}
		var takes int
		if out, takes = m.Deliver(ctx, most); takes < most {
			s.keys.Store(int64(takes))
		}
	}
}

// exec sends commands in one pipeline.
func (s *Sender) exec(ctx context.Context, all []redis.Cmder) (err error) {
	defer background.Recover(&err)
	pipe := s.client.Pipeline()
	for _, cmd := range all {
		_ = pipe.Process(ctx, cmd) // this only queues the command in the pipeline
	}
	_, err = pipe.Exec(ctx)
	return err
}

// stamp puts an error into commands that ended without one. A hook may refuse commands,
// and a connection may fail before any was sent. After a panic it is not known which
// commands have their answers, so none of them counts as answered.
func stamp(err error, all ...redis.Cmder) {
	if err == nil || !background.IsPanic(err) && slices.ContainsFunc(all, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		return
	}
	for _, cmd := range all {
		cmd.SetErr(err)
	}
}

// Outcome returns how the command ended, given the error that sending it returned. If it
// ended with a reply that is not known, unknown says with which.
func (c *Command) Outcome(sent error) (r queue.Result, unknown error) {
	stamp(sent, c)
	answered, unknown := c.Answered()
	switch {
	case background.IsPanic(c.Err()), c.Err() == nil && !c.Written(): // its caller withdrew it in time
		return queue.Ignored, nil
	case answered:
		return queue.Answered, nil
	case unknown != nil:
		return queue.Unknown, unknown
	case c.Written():
		return queue.Unanswered, nil
	}
	return queue.Unsent, nil
}

// batchContext has the values of one caller, and a deadline without a timer: clients set
// the deadline on connections. It does not end when a caller leaves.
type batchContext struct {
	values   context.Context
	deadline time.Time
}

func (c *batchContext) Deadline() (time.Time, bool) { return c.deadline, true }
func (c *batchContext) Done() <-chan struct{}       { return nil }
func (c *batchContext) Err() error                  { return nil }
func (c *batchContext) Value(key any) any           { return c.values.Value(key) }
