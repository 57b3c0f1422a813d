package redistest

import (
	"context"
	"encoding"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Write does to a command what writing it to a connection does, and returns its words as the server gets them.
func Write(cmd redis.Cmder) []any {
	words := slices.Clone(cmd.Args())
	for i := range words {
		switch word := cmd.Args()[i].(type) { // a merged command may change what follows
		case encoding.BinaryMarshaler:
			text, _ := word.MarshalBinary()
			words[i] = string(text)
		default:
			words[i] = word
		}
	}
	return words
}

// CutClient is a client whose server can go away.
type CutClient struct {
	*redis.Client
	how atomic.Pointer[string]
}

// Cut has every call fail: "refused" at once, "silent" when its context ends, "forbidden"
// because the user may not run scripts, and "lost" after it has run.
func (c *CutClient) Cut(how string) { c.how.Store(&how) }

// Mend ends what Cut began.
func (c *CutClient) Mend() { c.how.Store(nil) }

// Process is that of a client that did write the command.
func (c *CutClient) Process(ctx context.Context, cmd redis.Cmder) error {
	how := c.how.Load()
	if how == nil {
		return c.Client.Process(ctx, cmd)
	}
	if *how == "lost" {
		_ = c.Client.Process(ctx, cmd)
	} else {
		Write(cmd)
	}
	err := io.EOF
	switch *how {
	case "silent":
		<-ctx.Done()
		err = ctx.Err()
	case "forbidden":
		err = forbidden{}
	}
	cmd.SetErr(err)
	return err
}

// forbidden is the reply to a user without rights.
type forbidden struct{}

func (forbidden) Error() string {
	return "NOPERM User neap has no permissions to run the 'evalsha' command"
}
func (forbidden) RedisError() {}

// Alone is a client of another type, so that a store sends each call by itself.
type Alone struct{ redis.UniversalClient }

// DelayedClient is a client of whose calls of one script the first Most are on their way
// until the test delivers them one by one, while the client thinks that the
// connection broke.
type DelayedClient struct {
	redis.UniversalClient
	SHA  string
	Most int

	mu    sync.Mutex
	calls [][]any
}

// Process holds a call back, or makes it.
func (c *DelayedClient) Process(ctx context.Context, cmd redis.Cmder) error {
	if strings.Contains(cmd.String(), c.SHA) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.calls) < c.Most {
			c.calls = append(c.calls, Write(cmd))
			cmd.SetErr(io.EOF)
			return io.EOF
		}
	}
	return c.UniversalClient.Process(ctx, cmd)
}

// Waiting is how many calls are on their way.
func (c *DelayedClient) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// Deliver makes the first call that is on its way. Another may be held back in its
// place.
func (c *DelayedClient) Deliver(tb testing.TB) {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == 0 {
		tb.Fatal("no call is on its way, want one")
	}
	if err := c.UniversalClient.Process(tb.Context(), redis.NewCmd(tb.Context(), c.calls[0]...)); err != nil {
		tb.Error(err)
	}
	c.calls = c.calls[1:]
}

// LossyClient is a client that loses a reply of a script, behind which something
// happens.
type LossyClient struct {
	redis.UniversalClient
	SHA string

	then atomic.Pointer[func()]
}

// Next has the next reply lost, and then called before the caller knows.
func (c *LossyClient) Next(then func()) { c.then.Store(&then) }

// Process makes the call.
func (c *LossyClient) Process(ctx context.Context, cmd redis.Cmder) error {
	err := c.UniversalClient.Process(ctx, cmd)
	if err == nil && strings.Contains(cmd.String(), c.SHA) {
		if then := c.then.Swap(nil); then != nil {
			(*then)()
			cmd.SetErr(io.EOF)
			return io.EOF
		}
	}
	return err
}

// Processor is the least that a client does.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// AbsentClient is a client that reports that its server is gone.
type AbsentClient struct {
	Processor
	Gone atomic.Bool
}

// Process fails without a reply while the server is gone.
func (a *AbsentClient) Process(ctx context.Context, cmd redis.Cmder) error {
	if !a.Gone.Load() {
		return a.Processor.Process(ctx, cmd)
	}
	err := errors.New("dial: no secret-key here")
	cmd.SetErr(err)
	return err
}

// HookedClient is a client that calls a function before every command.
type HookedClient struct {
	Processor
	Before atomic.Pointer[func(redis.Cmder)]
}

// Process calls the function first.
func (h *HookedClient) Process(ctx context.Context, cmd redis.Cmder) error {
	if before := h.Before.Load(); before != nil {
		(*before)(cmd)
	}
	return h.Processor.Process(ctx, cmd)
}

// TimedClient sends each command between two readings of the server's clock, in one
// transaction. The library's own Redis user may not begin a transaction.
type TimedClient struct {
	Admin         *redis.Client
	Before, After int64 // in microseconds
}

// Process sends a command.
func (b *TimedClient) Process(ctx context.Context, cmd redis.Cmder) error {
	pipe := b.Admin.TxPipeline()
	before := pipe.Time(ctx)
	if err := pipe.Process(ctx, cmd); err != nil {
		return err
	}
	after := pipe.Time(ctx)
	_, err := pipe.Exec(ctx)
	b.Before, b.After = before.Val().UnixMicro(), after.Val().UnixMicro()
	return err
}
