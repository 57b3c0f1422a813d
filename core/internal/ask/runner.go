package ask

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// Runner runs the scripts of a primitive on its store, each within the budget. It is safe
// for concurrent use.
type Runner struct {
	Inside inside.Store
	Budget time.Duration
}

// Run is Run of a [script.Runner]. The script must be made.
func (r *Runner) Run(ctx context.Context, s *script.Script, keys []string, args ...any) (any, error) {
	c := new(call.Call)
	if err := r.Do(ctx, c, s, keys, args...); err != nil {
		return nil, err
	}
	return c.Reply(), nil
}

// Do is Run with a Call of yours, which has the reply afterwards. Use a Call once: the
// client may still refer to its memory. Its Reset tells you whether you may use it again.
func (r *Runner) Do(ctx context.Context, c *call.Call, s *script.Script, keys []string, args ...any) error {
	misuse.Context(ctx)
	if err := c.Set((*wire.Script)(s), keys, args); err != nil {
		return &script.Error{Script: s.Name(), Class: script.ErrConfiguration, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.Inside.Send(ctx, c, r.Budget)
}
