package history

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// Calls counts what one operation sent, and what of it was answered.
type Calls struct {
	sent, answered atomic.Int64
	Saw            func(args []any) // called with each command; nil calls nothing
}

type callsKey struct{}

// WithCalls counts the commands that are sent with ctx.
func WithCalls(ctx context.Context, p *Calls) context.Context {
	return context.WithValue(ctx, callsKey{}, p)
}

// Doubts is how many commands had no answer.
func (p *Calls) Doubts() int { return int(p.sent.Load() - p.answered.Load()) }

// Client counts for the operation whose context it is given. When the history is
// over, it answers each command with a 1 and sends nothing: what is left of the
// history, which looks for its grants for as long as leases last, has then found
// them, and does not keep the server from the histories that follow.
type Client struct {
	*redis.Client
	Recorder *Recorder // nil is never over

	// Stray sends what belongs to no operation, such as an undo; nil only sends.
	Stray func(ctx context.Context, cmd redis.Cmder, send func() (answered bool, err error)) error
}

// Process sends a command.
func (c Client) Process(ctx context.Context, cmd redis.Cmder) error {
	if reply, ok := cmd.(interface{ SetVal(val any) }); ok && c.Recorder != nil && c.Recorder.over.Load() {
		reply.SetVal(int64(1))
		return nil
	}
	send := func() (bool, error) {
		err := c.Client.Process(ctx, cmd)
		_, reply := errors.AsType[redis.Error](err)
		return err == nil || reply, err
	}
	p, ok := ctx.Value(callsKey{}).(*Calls)
	switch {
	case ok:
		if p.Saw != nil {
			p.Saw(redistest.Write(cmd))
		}
		p.sent.Add(1)
		answered, err := send()
		if answered {
			p.answered.Add(1)
		}
		return err
	case c.Stray != nil:
		return c.Stray(ctx, cmd, send)
	}
	_, err := send()
	return err
}
