package script

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/misuse"
)

// Call is one call of [Runner.Run], as a [Sender] sees it. The zero Call is not
// usable. It is all that a call needs where nothing goes wrong, in one piece of memory.
type Call struct {
	runner *Runner
	script *Script
	keys   []string
	args   []any
	spent  atomic.Bool
	sent   call
}

// call is what is sent. A client that lost interest may hold it: it is not used again.
type call struct {
	budget

	first command
	few   [9]any // the words of a short command
}

func (c *Call) made() bool { return c != nil && c.runner != nil }

// Script is the script that is to run.
func (c *Call) Script() *Script {
	misuse.Made(c.made(), errCall)
	return c.script
}

// Key is the first key. The others are in the same slot.
func (c *Call) Key() string {
	misuse.Made(c.made(), errCall)
	return c.keys[0]
}

// Budget is that of the runner.
func (c *Call) Budget() time.Duration {
	misuse.Made(c.made(), errCall)
	return c.runner.budget
}

// Send makes the call, within that budget, once. The errors are those of
// [Runner.Run].
func (c *Call) Send(ctx context.Context, budget time.Duration) (any, error) {
	if !c.made() {
		return nil, &Error{Class: ErrConfiguration, Err: errCall}
	}
	if c.spent.Swap(true) {
		return nil, &Error{Script: c.script.name, Class: ErrConfiguration, Err: errSpent}
	}
	s, r, call := c.script, c.runner, &c.sent
	call.begin(ctx, budget)
	call.polled = r.pipeline != nil // it asks once, where it has to wait at all
	defer call.end()
	line := append(call.few[:0], "evalsha", s.sha, keyCount(len(c.keys)))
	for _, key := range c.keys {
		line = append(line, key)
	}
	line = append(line, c.args...)

	for attempt := 0; ; attempt++ {
		reply, written, err := r.process(call, attempt, line)
		if err == nil || errors.Is(err, redis.Nil) {
			return reply, nil
		}
		class, again := classify(err, written)
		failure := &Error{Script: s.name, Class: class, Err: s.place(err)}
		switch {
		case ended(ctx) != nil:
			return nil, ended(ctx)
		case !again:
			if isDeadline(err) {
				failure.Err = errBudget
			}
			return nil, failure
		case line[0] == "evalsha" && redis.HasErrorPrefix(err, "NOSCRIPT No matching script"):
			// Not in place: a client that lost interest may still hold the line.
			line = append([]any{"eval", s.source}, line[2:]...)
		case !call.pause(attempt):
			if err := ended(ctx); err != nil {
				return nil, err
			}
			return nil, failure
		}
	}
}

// command is one attempt to send the words.
func (c *call) command(ctx context.Context, attempt int, words []any) *command {
	cmd := &c.first
	if attempt > 0 {
		cmd = new(command)
	}
	cmd.Cmd = *redis.NewCmd(ctx, words...)
	return cmd
}

// command is sent at most once. go-redis sends a command again when its reply
// was lost, and a script that takes permits would take them again.
type command struct {
	redis.Cmd
	state atomic.Uint32
}

// What becomes of a command: one of the last two, and it stays that.
const (
	waiting uint32 = iota
	written
	withdrawn
)

// withdraw keeps the command from being written, and says whether it came in time.
func (c *command) withdraw() bool { return c.state.CompareAndSwap(waiting, withdrawn) }

func (c *command) written() bool { return c.state.Load() == written }

// noScript is the SHA of a script that no server has: what a withdrawn command writes.
const noScript = "0000000000000000000000000000000000000000"

// NoRetry overrides redis.Cmd's; go-redis still follows MOVED and ASK.
func (*command) NoRetry() bool { return true }

// Args is what go-redis asks for when it writes the command. A command that
// was never asked was never written. In the place of one that was withdrawn it writes
// a call that the server refuses.
func (c *command) Args() []any {
	words := c.Cmd.Args()
	if !c.state.CompareAndSwap(waiting, written) && !c.written() {
		words = slices.Clone(words) // of the same shape, since hooks read them too
		words[0], words[1] = "evalsha", noScript
	}
	return words
}
