package wire

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Command is one attempt to send a call. It is sent at most once: go-redis would send a
// command again if its reply was lost, and a script that takes permits would take them
// again. The zero Command is ready for Set.
type Command struct {
	redis.Cmd
	state    atomic.Uint32
	unmerged bool // it must not be merged
	text     text
	due      time.Time
	next     *Command // the next one in a run
	told     []int64  // what a merged call told of its run; nil if none answered it
	place    int64    // its place in the run, from 1 on
}

// Set makes it a command with these words. The second of them is missing: it becomes the
// text of the script if the first is eval, and its SHA otherwise. due is when the budget of
// the call ends. If unmerged is true, the command is not merged.
func (c *Command) Set(ctx context.Context, s *Script, words []any, unmerged bool, due time.Time) {
	eval := words[0] == "eval"
	words[1] = &c.text
	c.Cmd = *redis.NewCmd(ctx, words...)
	c.text = text{of: c, script: s, eval: eval}
	c.unmerged, c.due = unmerged || eval, due
}

// These are the states of a command. It ends in one of the last two, and stays in it.
const (
	waiting uint32 = iota
	written
	withdrawn
)

// begin notes that the command is written. It returns false if the command was withdrawn.
func (c *Command) begin() bool { return c.state.CompareAndSwap(waiting, written) || c.Written() }

// Withdraw keeps the command from being written, and reports whether it was in time. If
// so, a call that no server knows is written instead.
func (c *Command) Withdraw() bool {
	return c.state.CompareAndSwap(waiting, withdrawn) || c.state.Load() == withdrawn
}

// Written reports whether the command was written, or began to be.
func (c *Command) Written() bool { return c.state.Load() == written }

// Size returns about how many bytes are sent for it.
func (c *Command) Size() int {
	n := 0
	for _, arg := range c.Args() {
		switch w := arg.(type) {
		case string:
			n += len(w)
		case *Word:
			n += len(*w)
		case *text:
			n += len(w.bytes())
		default:
			n += 8 // a number
		}
	}
	return n
}

// Key returns the first key.
func (c *Command) Key() string {
	arg := c.Args()[3]
	if key, is := arg.(*Word); is {
		return string(*key)
	}
	return arg.(string)
}

// Due returns when the budget of the call ends. If the deadline of the context is earlier,
// it is the caller's own.
func (c *Command) Due() time.Time { return c.due }

// Fault returns how the command failed, given the error that sending it returned. It is nil
// if the command has its answer.
func (c *Command) Fault(sent error) error {
	// If a sentinel answers nil, go-redis wraps that in the error of a dial, which does not
	// count as an answer.
	if sent == nil || errors.Is(sent, redis.Nil) && c.isNil() {
		return c.check()
	}
	return sent
}

// isNil reports whether Redis answered nil. An error that wraps redis.Nil is no reply.
func (c *Command) isNil() bool { return c.Written() && c.Err() == redis.Nil }

// Answered reports whether the command has ended with an answer: of the script, or of a
// server that refused the call. If it has ended with a reply that is none, unknown says
// with which.
func (c *Command) Answered() (answered bool, unknown error) {
	err := c.Err()
	if err == nil || c.isNil() {
		unknown = c.check()
		return unknown == nil, unknown
	}
	if _, is := errors.AsType[redis.Error](err); !is || errors.Is(err, redis.Nil) {
		return false, nil
	}
	if c.text.script.Classify(err, c.Written()).Unknown {
		return false, err
	}
	return true, nil
}

// Told returns what a merged call told of its run, and the place of this call in the run,
// from 1 on. Then nothing else refers to the command. told is nil if no merged call
// answered it.
func (c *Command) Told() (told []int64, place int64) { return c.told, c.place }

// NewProbe makes a command for the server that has a key. The server refuses the command
// and does nothing else.
func NewProbe(ctx context.Context, key string) *Command {
	cmd := new(Command)
	cmd.Set(ctx, nil, []any{"evalsha", nil, "1", key}, true, time.Time{})
	return cmd
}

// NoRetry overrides that of redis.Cmd. go-redis still follows MOVED and ASK.
func (*Command) NoRetry() bool { return true }
