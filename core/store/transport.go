package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/queue"
	"github.com/neap-go/neap/core/script"
)

// lateAnswer is how long after its callers have left a batch may still be answered. What is answered
// then was not lost, and its connection can be used again.
const lateAnswer = time.Second

// pipeliner is a client that sends several commands at once.
type pipeliner interface {
	script.Client
	Pipeline() redis.Pipeliner
}

// transport sends the calls of a breaker, in batches if there are several.
type transport struct {
	*breaker

	client  pipeliner
	direct  bool             // the client ends a call at its deadline, so that a caller may make it by itself
	by      script.Transport // send, made once
	queue   *queue.Queue
	senders sync.Pool
	oneKey  atomic.Bool // calls with many keys are refused
}

func newTransport(b *breaker, client pipeliner, direct bool, budget time.Duration) *transport {
	t := &transport{breaker: b, client: client, direct: direct}
	_, cluster := client.(*redis.ClusterClient)
	t.oneKey.Store(cluster) // whose nodes have many slots
	t.by = t.send
	t.queue = queue.New(t, budget)
	return t
}

// send is a [script.Transport].
func (t *transport) send(ctx context.Context, cmd script.Command) error {
	if t.direct {
		if b, ok := t.queue.BeginDirect(); ok {
			r := queue.Unsent // if a hook panics
			defer func() { t.queue.EndDirect(b, r, r != queue.Answered && ctx.Err() != nil) }()
			stamp(t.client.Process(ctx, cmd), cmd)
			r = resultOf(cmd)
			return nil
		}
	}
	return t.queue.Do(ctx, cmd)
}

// Send sends a batch, as a [queue.Server].
func (t *transport) Send(b *queue.Batch) queue.Result {
	ctx := &batchContext{values: context.Background(), deadline: b.Deadline.Add(lateAnswer)}
	if len(b.Entries) == 1 {
		e := b.Entries[0]
		ctx.values = e.Context
		cmd := e.Call.(script.Command)
		stamp(t.client.Process(ctx, cmd), cmd)
		return resultOf(cmd)
	}
	m, _ := t.senders.Get().(*batchSender)
	if m == nil {
		m = new(batchSender)
	}
	m.send(ctx, t, b)
	t.senders.Put(m)
	r := queue.Answered
	for _, e := range b.Entries {
		switch one := resultOf(e.Call.(script.Command)); {
		case one == queue.Unanswered:
			r = queue.Unanswered
		case one == queue.Unsent && r == queue.Answered:
			r = queue.Unsent
		}
	}
	return r
}

// batchSender is what sending a batch needs.
type batchSender struct {
	script.Merger

	calls []script.Command
}

// send sends the calls of a batch as few as they can be.
func (m *batchSender) send(ctx context.Context, t *transport, b *queue.Batch) {
	m.calls = m.calls[:0]
	for _, e := range b.Entries {
		m.calls = append(m.calls, e.Call.(script.Command))
	}
	for out := m.Merge(ctx, m.calls, !t.oneKey.Load()); len(out) > 0; {
		if len(out) == 1 {
			stamp(t.client.Process(ctx, out[0]), out...)
		} else {
			pipe := t.client.Pipeline()
			for _, cmd := range out {
				_ = pipe.Process(ctx, cmd) // it only puts the command down
			}
			_, err := pipe.Exec(ctx)
			stamp(err, out...)
		}
		var crossed bool
		if out, crossed = m.Deliver(ctx); crossed {
			t.oneKey.Store(true)
		}
	}
}

// stamp puts an error into commands that ended without one: a hook may refuse them, and a
// connection may fail before any was sent.
func stamp(err error, all ...script.Command) {
	if err == nil || slices.ContainsFunc(all, func(cmd script.Command) bool { return cmd.Err() != nil }) {
		return
	}
	for _, cmd := range all {
		cmd.SetErr(err)
	}
}

// resultOf is what became of a command. One that its caller withdrew in time has neither an
// answer nor an error.
func resultOf(cmd script.Command) queue.Result {
	switch {
	case answered(cmd.Err()), cmd.Written() && cmd.Err() == redis.Nil: // one that is wrapped is no reply
		return queue.Answered
	case cmd.Written():
		return queue.Unanswered
	}
	return queue.Unsent
}

// Note tells the breaker and the node what became of a batch.
func (t *transport) Note(r queue.Result, calls int) {
	var err error
	switch r {
	case queue.Unanswered:
		err = errDoubt
	case queue.Unsent:
		err = errNotSent
	default:
	}
	_, _ = t.Execute(func() (any, error) { return nil, err })
	if err == nil {
		t.node.answered()
		return
	}
	t.failed.Store(t.node.unanswered(err, calls))
}

var (
	errNoAnswer = errors.New("no answer in time")
	errDoubt    = &script.Error{Class: script.ErrMaybeExecuted, Err: errNoAnswer}
	errNotSent  = &script.Error{Class: script.ErrNotExecuted, Err: errNoAnswer}
)

// Probe asks for a script that no server has.
func (t *transport) Probe(c queue.Call, more time.Duration) queue.Result {
	ctx, cancel := context.WithTimeout(context.Background(), t.budget+more)
	cmd := c.(script.Command).Probe(ctx)
	done := make(chan error, 1)
	go func() { // some clients do not end with ctx
		defer cancel()
		defer func() {
			if recover() != nil { // of a hook; the callers that wait must not end with it
				done <- errDoubt
			}
		}()
		done <- t.client.Process(ctx, cmd)
	}()
	select {
	case err := <-done:
		stamp(err, cmd)
		return resultOf(cmd)
	case <-ctx.Done():
		return queue.Unanswered
	}
}

// batchContext has the values of one caller, and a deadline without a timer: clients set
// it on connections. It does not end with a caller.
type batchContext struct {
	values   context.Context
	deadline time.Time
}

func (c *batchContext) Deadline() (time.Time, bool) { return c.deadline, true }
func (c *batchContext) Done() <-chan struct{}       { return nil }
func (c *batchContext) Err() error                  { return nil }
func (c *batchContext) Value(key any) any           { return c.values.Value(key) }
