package call

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/wire"
)

// Processor is what every go-redis client is.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Client makes calls through a go-redis client, each by itself, whatever the client's own
// time-outs are. It is safe for concurrent use.
//
// A client with ContextTimeoutEnabled (and no ReadTimeout or WriteTimeout of -2), and an
// AsyncAutoPipeline, are called directly. Any other client is called on a goroutine of its
// own, because it would take longer than the budget. So is a client with
// ContextTimeoutEnabled if the caller's own deadline comes before the end of the budget: the
// client would close the connection at that deadline. And so is a ClusterClient until a
// call of it had an answer: before its first, it asks a node for its commands, for up to 5 s
// whatever the deadline is.
type Client struct {
	rdb      Processor
	inline   bool
	cold     atomic.Bool // a ClusterClient that may still ask for the commands
	known    bool        // the type of the client
	pipeline *redis.AutoPipeliner
	waiters  waiters // for a pipeline
}

// Process sends a command as the go-redis client does.
func (cl *Client) Process(ctx context.Context, cmd redis.Cmder) error {
	return cl.rdb.Process(ctx, cmd)
}

// NewClient makes a Client. The error matches [ErrClient].
func NewClient(rdb Processor) (*Client, error) {
	if err := check(rdb); err != nil {
		return nil, err
	}
	cl := &Client{rdb: rdb, pipeline: pipelineOf(rdb)}
	cl.inline, cl.known = honoursDeadlines(rdb)
	_, cluster := rdb.(*redis.ClusterClient)
	cl.cold.Store(cluster)
	return cl, nil
}

// ErrClient reports a client that cannot be used for decisions. Package script documents
// it.
var ErrClient = errors.New("script: unusable client")

var redisPackage = reflect.TypeFor[redis.Client]().PkgPath()

// check refuses clients that have a Process method but would answer without asking Redis.
func check(rdb Processor) error {
	if rdb == nil {
		return fmt.Errorf("%w: rdb is nil: pass a connected go-redis client", ErrClient)
	}
	switch v := reflect.ValueOf(rdb); {
	case v.Kind() != reflect.Pointer:
	case v.IsNil():
		return fmt.Errorf("%w: rdb is a nil %T: pass a connected go-redis client", ErrClient, rdb)
	case v.Type().Elem().PkgPath() == redisPackage && v.Elem().IsZero():
		return fmt.Errorf("%w: rdb is a zero %T: pass a client that redis.NewClient or its like has made", ErrClient, rdb)
	}
	switch rdb.(type) {
	case interface {
		Exec(ctx context.Context) ([]redis.Cmder, error)
	}:
		return fmt.Errorf("%w: rdb is a pipeline (%T), which answers before it has asked: pass the client itself", ErrClient, rdb)
	case *redis.Tx:
		return fmt.Errorf("%w: rdb is a transaction (%T), which lives on one connection: pass the client itself", ErrClient, rdb)
	}
	return nil
}

// honoursDeadlines reports whether the client ends its I/O at the context's deadline. It
// can do so only if it is known. With a time-out below 0, which go-redis makes of -2, it
// sets no deadline on its connections.
func honoursDeadlines(rdb Processor) (honours, known bool) {
	switch c := rdb.(type) {
	case *redis.Client:
		o := c.Options()
		return o.ContextTimeoutEnabled && min(o.ReadTimeout, o.WriteTimeout) >= 0, true
	case *redis.ClusterClient:
		o := c.Options()
		return o.ContextTimeoutEnabled && min(o.ReadTimeout, o.WriteTimeout) >= 0, true
	case *redis.Ring:
		o := c.Options()
		return o.ContextTimeoutEnabled && min(o.ReadTimeout, o.WriteTimeout) >= 0, true
	}
	return false, false
}

// HonoursDeadlines reports whether the go-redis client ends its I/O at the context's deadline.
func (cl *Client) HonoursDeadlines() bool { return cl.inline }

// pipelineOf returns the client if it is an AutoPipeliner whose calls return before they
// have run. For any other client it returns nil.
func pipelineOf(rdb Processor) *redis.AutoPipeliner {
	if p, ok := rdb.(*redis.AutoPipeliner); ok && !p.IsBlocking() {
		return p
	}
	return nil
}

// isInline reports whether the caller's own goroutine makes a call.
func (cl *Client) isInline(call *sent) bool {
	return call.by == nil && cl.inline && !call.isShort() && !cl.cold.Load()
}

// process makes one attempt. If it returns before the command has ended, the command may
// still be on its way. The error is then not the command's, and its reply must not be
// read.
func (cl *Client) process(call *sent, attempt int, line []any) (*wire.Command, error) {
	switch {
	case call.by != nil:
		call.pollAnew() // the transport ends the wait
		cmd := call.command(call, attempt, line)
		err := call.by.Do(call, cmd)
		if call.gaveUp = err != nil; call.gaveUp {
			return cmd, err
		}
		return cmd, cmd.Err()
	case cl.isInline(call):
		cmd := call.command(call, attempt, line)
		return cmd, background.Process(call, cl.rdb, cmd)
	case cl.pipeline != nil:
		cmd := call.command(call, attempt, line)
		future, err := cl.submit(call, cmd)
		if err != nil {
			return cmd, err
		}
		w := cl.waiters.get(&call.budget)
		defer cl.waiters.put(w)
		err = future.WaitContext(w)
		if err != nil && w.Err() != nil {
			cmd.Withdraw() // it may still be in the pipeline's queue
			return cmd, w.Err()
		}
		return cmd, err
	}
	ctx := call.real()
	sent, over := ctx, context.CancelFunc(func() {})
	switch {
	case cl.inline: // at the caller's own deadline, the client would close the connection; a cold ClusterClient heeds none
		sent, over = context.WithDeadline(context.WithoutCancel(ctx), call.due())
	case cl.known:
		background.NoDeadlines()
	}
	cmd := call.command(sent, attempt, line)
	done := background.Start(func() error {
		defer over()
		err := cl.rdb.Process(sent, cmd)
		if err == nil {
			cl.cold.Store(false)
		}
		return err
	})
	select {
	case err := <-done:
		return cmd, err
	case <-ctx.Done():
	}
	if cmd.Withdraw() {
		over() // it no longer waits for a connection
		return cmd, ctx.Err()
	}
	select {
	case err := <-done:
		return cmd, err
	default:
		return cmd, ctx.Err()
	}
}

// submit gives a command to the pipeline.
func (cl *Client) submit(ctx context.Context, cmd *wire.Command) (future redis.AutoFuture, err error) {
	defer background.Recover(&err)
	return cl.pipeline.Submit(ctx, cmd), nil
}

// command makes the command for one attempt to send the words.
func (c *sent) command(ctx context.Context, attempt int, words []any) *wire.Command {
	cmd := &c.first
	if attempt > 0 {
		cmd, words = new(wire.Command), slices.Clone(words)
	}
	cmd.Set(ctx, c.script, words, c.unmerged, c.due())
	return cmd
}
