package script

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
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

// Runner runs scripts through one client. It makes each call at most once and within the
// budget. It is safe for concurrent use. The zero Runner is not usable; use NewRunner.
type Runner struct {
	rdb      Client
	sender   Sender // nil if there is none
	budget   time.Duration
	inline   bool
	known    bool // the type of the client
	pipeline *redis.AutoPipeliner
	waiters  *waiters // for a pipeline
}

// NewRunner makes a runner. rdb is a go-redis client or a store of package store. Nil
// opts mean the zero Options. NewRunner sends nothing.
//
// The error matches [ErrClient] if the client is nil or would answer without asking
// Redis, as a pipeline would. It is another error if the budget is below a millisecond.
//
// With a store, the runner shares the breaker, the first contact and the log with
// everything else on that store.
//
// A client with ContextTimeoutEnabled, and an AsyncAutoPipeline, are called directly. Any
// other client is called on a goroutine of its own, because it would take longer than the
// budget. So is a client with ContextTimeoutEnabled if the caller's own deadline comes
// before the end of the budget: the client would close the connection at that deadline.
func NewRunner(rdb Client, opts *Options) (*Runner, error) {
	if opts == nil {
		opts = &Options{}
	}
	sender, _ := rdb.(Sender)
	if sender != nil {
		rdb = sender.Client()
	}
	if err := check(rdb); err != nil {
		return nil, err
	}
	if opts.Budget != 0 && opts.Budget < time.Millisecond {
		return nil, fmt.Errorf("script: Budget is %v: use at least a millisecond, or 0 for %v", opts.Budget, DefaultBudget)
	}
	budget := opts.Budget
	switch {
	case budget != 0:
	case sender != nil:
		budget = sender.Budget(DefaultBudget)
	default:
		budget = DefaultBudget
	}
	r := &Runner{rdb: rdb, sender: sender, budget: budget, pipeline: pipelineOf(rdb)}
	r.inline, r.known = honoursDeadlines(rdb)
	if r.pipeline != nil {
		r.waiters = new(waiters)
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
// script's name. So has a script that returns one whose whole text stands in it as one
// string: redis.error_reply('SOLDOUT no units are left') or {err = '...'}. Any other reply
// is [ErrMaybeExecuted], because a proxy may have given it. So raise an error whose text
// your script makes up. The script's own errors must not be worded like those of the server,
// such as "BUSY Redis is busy running a script". They would be taken for the server's
// refusal.
//
// All keys must have the same {hash tag}, on a standalone server too, so that what works
// on a laptop also works on a cluster.
func (r *Runner) Run(ctx context.Context, s *Script, keys []string, args ...any) (any, error) {
	call := new(Call)
	if err := r.Do(ctx, call, s, keys, args...); err != nil {
		return nil, err
	}
	return call.Reply(), nil
}

// Do is Run with a Call of yours, which has the reply afterwards. Use a Call once: the
// client may still refer to its memory. [Call.Reset] tells you whether you may use it
// again.
func (r *Runner) Do(ctx context.Context, call *Call, s *Script, keys []string, args ...any) error {
	misuse.Context(ctx)
	switch {
	case r == nil || r.rdb == nil:
		return &Error{Class: ErrConfiguration, Err: errRunner}
	case s == nil || s.sha == nil:
		return &Error{Class: ErrConfiguration, Err: errScript}
	case call == nil || call.made():
		return &Error{Script: s.name, Class: ErrConfiguration, Err: errSpent}
	}
	if err := checkKeys(keys); err != nil {
		return &Error{Script: s.name, Class: ErrConfiguration, Err: err}
	}
	call.runner, call.script, call.keys, call.args = r, s, keys, args
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.sender != nil {
		return r.sender.Send(ctx, call)
	}
	return call.Send(ctx, r.budget)
}

// ended returns ctx.Err(), but does not wait for a timer that is late.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// process makes one attempt. If it returns before the command has ended, the command may
// still be on its way. The error is then not the command's, and its reply must not be
// read.
func (r *Runner) process(call *call, attempt int, line []any) (*command, error) {
	switch {
	case call.by != nil:
		call.pollAnew() // the transport ends the wait
		cmd := call.command(call, attempt, line)
		err := call.by(call, cmd)
		if call.gaveUp = err != nil; call.gaveUp {
			return cmd, err
		}
		return cmd, cmd.Err()
	case r.inline && !call.isShort():
		cmd := call.command(call, attempt, line)
		return cmd, background.Process(call, r.rdb, cmd)
	case r.pipeline != nil:
		cmd := call.command(call, attempt, line)
		future, err := r.submit(call, cmd)
		if err != nil {
			return cmd, err
		}
		w := r.waiters.get(&call.budget)
		defer r.waiters.put(w)
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
	case r.inline: // at the caller's own deadline, the client would close the connection
		sent, over = context.WithDeadline(context.WithoutCancel(ctx), call.deadline.Add(call.short))
	case r.known:
		background.NoDeadlines()
	}
	cmd := call.command(sent, attempt, line)
	done := background.Start(func() error {
		defer over()
		return r.rdb.Process(sent, cmd)
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
func (r *Runner) submit(ctx context.Context, cmd *command) (future redis.AutoFuture, err error) {
	defer background.Recover(&err)
	return r.pipeline.Submit(ctx, cmd), nil
}

// pause waits before the next attempt, twice as long each time. It reports whether any of
// the budget is left.
func (b *budget) pause(attempt int) bool {
	wait := time.Millisecond << min(attempt, 6)
	wait += rand.N(wait)
	if time.Until(b.deadline) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.Context.Done():
		return false
	}
}

func checkKeys(keys []string) error {
	if len(keys) == 0 {
		return errNoKeys
	}
	if len(keys) == 1 {
		return nil
	}
	tag := hashTag(keys[0])
	for _, key := range keys[1:] {
		if hashTag(key) != tag {
			return errManyTags
		}
	}
	return nil
}

// hashTag returns the part of a key that decides its slot: the text between the first {
// and the first } after it, or the whole key if there is no such text. See the Redis
// Cluster specification, "Hash tags".
func hashTag(key string) string {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return key
	}
	if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
		return tag
	}
	return key
}
