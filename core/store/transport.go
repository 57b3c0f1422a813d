package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/queue"
	"github.com/neap-go/neap/core/script"
)

// lateAnswer is how much longer than its callers a batch waits for its answer, if the
// client has ContextTimeoutEnabled. Otherwise the client's ReadTimeout counts. A late
// answer shows that the server lives, and keeps the connection.
const lateAnswer = time.Second

// mostProbe is the longest time that a probe waits, however large the budget is: its
// connection may be dead.
const mostProbe = 5 * time.Second

// mostKeys is how many keys a merged call has at most. With more, each decision takes
// longer again.
const mostKeys = 16

// pipeliner is a client that sends several commands at once.
type pipeliner interface {
	script.Client
	Pipeline() redis.Pipeliner
}

// transport sends the calls of a breaker. It sends them in batches if there are several.
type transport struct {
	*breaker

	client  pipeliner
	direct  bool             // the client ends calls at their deadlines, so a lone caller may use it directly
	by      script.Transport // the method send, bound once
	queue   *queue.Queue
	senders sync.Pool
	keys    atomic.Int64 // how many keys a merged call may have
}

func newTransport(b *breaker, client pipeliner, direct bool, budget time.Duration) *transport {
	t := &transport{breaker: b, client: client, direct: direct}
	t.keys.Store(1)
	if _, plain := client.(*redis.Client); plain { // other clients choose the server by the key
		t.keys.Store(mostKeys)
	}
	t.by = t.send
	t.queue = queue.New(t, budget)
	return t
}

// send is a [script.Transport]. A short call does not go by itself: its batch waits for the
// answer longer than its caller, and so shows whether the server answers.
func (t *transport) send(ctx context.Context, cmd script.Command) error {
	if t.direct && !isShort(ctx, cmd.Due()) {
		if b, ok := t.queue.BeginDirect(); ok {
			r := queue.Ignored // the result if a hook ends the goroutine
			defer func() {
				over := !r.Replied() && ctx.Err() != nil
				if over && time.Now().Before(cmd.Due()) { // its caller left
					r = queue.Ignored
					t.probe(cmd.Key(), t.budget)
				}
				t.queue.EndDirect(b, r, over)
			}()
			stamp(background.Process(ctx, t.client, cmd), cmd)
			r = t.resultOf(cmd)
			return nil
		}
	}
	return t.queue.Do(ctx, cmd)
}

// Send sends a batch, as a [queue.Server].
func (t *transport) Send(b *queue.Batch) queue.Result {
	ctx := &batchContext{values: context.Background(), deadline: b.Deadline.Add(lateAnswer)}
	if len(b.Entries) == 1 {
		if !t.direct {
			background.NoDeadlines()
		}
		e := b.Entries[0]
		ctx.values = e.Context
		cmd := e.Call.(script.Command)
		stamp(background.Process(ctx, t.client, cmd), cmd)
		return t.resultOf(cmd)
	}
	m, _ := t.senders.Get().(*batchSender)
	if m == nil {
		m = new(batchSender)
	}
	m.send(ctx, t, b)
	t.senders.Put(m)
	var results queue.Results
	for _, e := range b.Entries {
		results.Add(t.resultOf(e.Call.(script.Command)))
	}
	return results.Batch()
}

// batchSender is the memory that sending a batch needs.
type batchSender struct {
	script.Merger

	calls []script.Command
}

// send merges the calls of a batch and sends the merged calls.
func (m *batchSender) send(ctx context.Context, t *transport, b *queue.Batch) {
	m.calls = m.calls[:0]
	for _, e := range b.Entries {
		m.calls = append(m.calls, e.Call.(script.Command))
	}
	most := int(t.keys.Load())
	for out := m.Merge(ctx, m.calls, most); len(out) > 0; {
		if len(out) == 1 {
			stamp(background.Process(ctx, t.client, out[0]), out...)
		} else {
			stamp(t.exec(ctx, out), out...)
		}
		var takes int
		if out, takes = m.Deliver(ctx, most); takes < most {
			t.keys.Store(int64(takes))
		}
	}
}

// exec sends commands in one pipeline.
func (t *transport) exec(ctx context.Context, all []redis.Cmder) (err error) {
	defer background.Recover(&err)
	pipe := t.client.Pipeline()
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
	if err == nil || !isPanic(err) && slices.ContainsFunc(all, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		return
	}
	for _, cmd := range all {
		cmd.SetErr(err)
	}
}

// isPanic reports whether a hook or the client panicked. That says nothing about the
// server.
func isPanic(err error) bool {
	_, is := errors.AsType[*background.PanicError](err)
	return is
}

// resultOf returns how a command ended. It tells the node of a reply that is not known.
func (b *breaker) resultOf(cmd script.Command) queue.Result {
	answered, unknown := cmd.Answered()
	switch {
	case isPanic(cmd.Err()), cmd.Err() == nil && !cmd.Written(): // its caller withdrew it in time
		return queue.Ignored
	case answered:
		return queue.Answered
	case unknown != nil:
		b.failed.Store(b.node.unanswered(&script.Error{Class: script.ErrMaybeExecuted, Err: unknown}, 1))
		return queue.Unknown
	case cmd.Written():
		return queue.Unanswered
	}
	return queue.Unsent
}

// Probe asks the server whether it answers.
func (t *transport) Probe(key string, more time.Duration) queue.Result {
	return t.ask(key, min(t.budget, mostProbe)+more)
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
