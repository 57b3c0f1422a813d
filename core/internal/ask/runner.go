package ask

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// Runner runs the scripts of a primitive on its store, each within the budget. It is safe
// for concurrent use.
type Runner struct {
	Store  inside.Store
	Budget time.Duration
}

// Run is Run of a [script.Runner].
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
	return r.Store.Send(ctx, c, r.Budget)
}

// Notify gives the end of a call to the observers of a store, with its duration and, if
// Redis did not answer, the class of its error.
func Notify(ctx context.Context, st *store.Store, e store.Event, began time.Time, err error) {
	if !st.Observed() {
		return
	}
	e.Duration = time.Since(began)
	if e.Outcome == store.Failed || e.Outcome == store.Canceled {
		e.Class = store.ClassOf(err)
	}
	st.Notify(ctx, e)
}
