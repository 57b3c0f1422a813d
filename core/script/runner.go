package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/wire"
)

// DefaultBudget is how long a call may take if neither Options.Budget nor the store's
// Budget is set. Limiters have their own, limit.DefaultBudget.
const DefaultBudget = 250 * time.Millisecond

// Options are the options of a runner. The zero value is ready to use.
type Options struct {
	// Budget is the most time that a call takes, including all attempts and waiting,
	// whatever the client's own time-outs are. (A shorter ReadTimeout of the client may
	// end a call sooner, and so may the caller's own deadline.) It is at least a
	// millisecond. 0 means the store's Budget, or else DefaultBudget. With a store, a call
	// may take longer in two cases: until a server has answered for the first time (the
	// store's FirstContact), and, with store.Queued, by up to a second while the process is
	// short of CPU.
	Budget time.Duration
}

// Runner runs scripts through one client. A script runs at most once per call, and a call
// ends within the budget. It is safe for concurrent use. The zero Runner is not usable;
// use NewRunner.
type Runner struct {
	rdb    Client
	client *call.Client // nil if there is a store
	store  inside.Store // nil if there is none
	budget time.Duration
}

// NewRunner makes a runner. rdb is a go-redis client or a store of package store. Nil
// opts mean the zero Options. NewRunner sends nothing.
//
// The error matches [ErrClient] if the client is nil or would answer without asking
// Redis, as a pipeline would, and if it is a store that was not made, or a struct around a
// store. It is another error if the budget is below a millisecond.
//
// With a store, the runner shares the breaker, the first contact and the log with
// everything else on that store.
//
// A client with ContextTimeoutEnabled (and no ReadTimeout or WriteTimeout of -2), and an
// AsyncAutoPipeline, are called directly. Any other client is called on a goroutine of its
// own, because it would take longer than the budget. So is a client with
// ContextTimeoutEnabled if the caller's own deadline comes before the end of the budget: the
// client would close the connection at that deadline.
func NewRunner(rdb Client, opts *Options) (*Runner, error) {
	if opts == nil {
		opts = &Options{}
	}
	r := &Runner{rdb: rdb, budget: cmp.Or(opts.Budget, DefaultBudget)}
	st, err := inside.Of(rdb)
	switch {
	case err == nil:
		r.rdb, r.store, r.budget = st.Client(), st, cmp.Or(opts.Budget, st.Budget(DefaultBudget))
	case errors.Is(err, inside.ErrNone):
		r.client, err = call.NewClient(rdb)
	}
	switch {
	case err != nil:
		return nil, err
	case r.budget < time.Millisecond:
		return nil, fmt.Errorf("script: Budget is %v: use at least a millisecond, or 0 for %v", opts.Budget, DefaultBudget)
	}
	return r, nil
}

// Run runs a script and returns its reply: nil, int64, string, or []any of these.
// Arguments are strings, byte slices, booleans, integers or floats.
//
// It costs one round trip, and one more if the server does not know the script yet. If
// Redis says that a call did not run, Run makes it again within the budget. If the reply
// is lost, it never does. The error is ctx.Err() if the caller's context ended, and
// otherwise an [*Error]. If the caller's deadline is before the end of the budget, and an
// answer could not come in time, the error is [context.DeadlineExceeded], perhaps a moment
// before ctx ends. What Redis or the network refuses at once is an [*Error] all the same.
//
// A script that raises an error, by redis.call or by error, has failed: Redis adds the
// script's name. So has a script that returns an error whose text is one string of its
// source: redis.error_reply('SOLDOUT no units are left') or {err = '...'}. Any other error
// reply is [ErrMaybeExecuted], because a proxy may have given it. So raise an error whose
// text your script makes up. The script's own errors must not be worded like those of the
// server, such as "BUSY Redis is busy running a script". They would be taken for the
// server's refusal.
//
// All keys must have the same {hash tag}, on a standalone server too, so that what works
// on a laptop also works on a cluster.
func (r *Runner) Run(ctx context.Context, s *Script, keys []string, args ...any) (any, error) {
	misuse.Context(ctx)
	switch {
	case r == nil || r.rdb == nil:
		return nil, &Error{Class: ErrConfiguration, Err: errRunner}
	case !(*wire.Script)(s).Made():
		return nil, &Error{Class: ErrConfiguration, Err: errScript}
	}
	c := new(call.Call)
	if err := c.Set((*wire.Script)(s), keys, args); err != nil {
		return nil, &Error{Script: s.Name(), Class: ErrConfiguration, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	if r.store != nil {
		err = r.store.Send(ctx, c, r.budget)
	} else {
		err = r.client.Do(ctx, c, r.budget, nil)
	}
	if err != nil {
		return nil, err
	}
	return c.Reply(), nil
}
