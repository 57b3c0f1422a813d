package script

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Command is one attempt to send a call. It is sent at most once.
type Command interface {
	redis.Cmder
	// Size returns about how many bytes are sent for it.
	Size() int
	// Withdraw keeps the command from being written, and reports whether it was in time.
	// If so, a call that no server knows is written instead.
	Withdraw() bool
	// Written reports whether the command was written, or began to be.
	Written() bool
	// Key returns the first key.
	Key() string
	// Due returns when the budget of the call ends. If the deadline of the context is
	// earlier, it is the caller's own.
	Due() time.Time
	// Answered reports whether it has ended with an answer, as [Error.Answered] has it. If
	// it has ended with a reply that is none, unknown says with which.
	Answered() (answered bool, unknown error)
}

// command is sent at most once. go-redis would send a command again if its reply was
// lost, and a script that takes permits would take them again.
type command struct {
	redis.Cmd
	state  atomic.Uint32
	alone  bool // it must not be merged
	whole  bool // its reply is number, from a merged call
	text   text
	budget *budget  // of its call; nil if there is none
	next   *command // the next one in a run
	number int64
}

// These are the states of a command. It ends in one of the last two, and stays in it.
const (
	waiting uint32 = iota
	written
	withdrawn
)

// begin notes that the command is written. It returns false if the command was withdrawn.
func (c *command) begin() bool { return c.state.CompareAndSwap(waiting, written) || c.Written() }

// Withdraw, Written, Size, Key and Due make it a [Command].
func (c *command) Withdraw() bool {
	return c.state.CompareAndSwap(waiting, withdrawn) || c.state.Load() == withdrawn
}

func (c *command) Written() bool { return c.state.Load() == written }

func (c *command) Size() int {
	n := 0
	for _, arg := range c.Args() {
		switch w := arg.(type) {
		case string:
			n += len(w)
		case *word:
			n += len(*w)
		case *text:
			n += len(w.bytes())
		default:
			n += 8 // a number
		}
	}
	return n
}

func (c *command) Key() string {
	arg := c.Args()[3]
	if key, is := arg.(*word); is {
		return string(*key)
	}
	return arg.(string)
}

func (c *command) Due() time.Time {
	if c.budget == nil {
		return time.Time{}
	}
	return c.budget.deadline.Add(c.budget.short)
}

// Answered makes it a [Command].
func (c *command) Answered() (answered bool, unknown error) {
	err := c.Err()
	if err == nil || err == redis.Nil && c.Written() { // a wrapped redis.Nil is not a reply
		unknown = c.check()
		return unknown == nil, unknown
	}
	if _, is := errors.AsType[redis.Error](err); !is || errors.Is(err, redis.Nil) {
		return false, nil
	}
	if c.text.script.classify(err, c.Written()).unknown {
		return false, err
	}
	return true, nil
}

// NewProbe makes a command for the server that has a key. The server refuses the command
// and does nothing else.
func NewProbe(ctx context.Context, key string) Command {
	cmd := new(command)
	cmd.text.of = cmd
	cmd.Cmd = *redis.NewCmd(ctx, "evalsha", &cmd.text, "1", key)
	return cmd
}

// NoRetry overrides that of redis.Cmd. go-redis still follows MOVED and ASK.
func (*command) NoRetry() bool { return true }
