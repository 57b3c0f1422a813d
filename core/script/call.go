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

// Call is one call of a script. It has, in one piece of memory, all that a call needs if
// nothing goes wrong. The zero Call is ready for [Runner.Do], which gives it to the
// [Sender]. It is not safe for concurrent use.
type Call struct {
	// Asked is when the budget begins. The zero time means when the call is sent. If the
	// caller has just read the clock, setting Asked saves another reading.
	Asked time.Time

	runner *Runner
	script *Script
	keys   []string
	key    string // the first key; the words that are sent point to it
	args   []any
	spent  atomic.Bool
	sent   call

	written bool // the last attempt was written, or began to be
	free    bool // a merged call answered it, so nothing else holds it
	reply   any
	number  int64 // the reply, if it is a whole number
	whole   bool
}

// call is what is sent. A client whose caller has left may still refer to it. Only Reset
// makes it usable again.
type call struct {
	budget

	by     Transport // nil if the runner's client sends it
	script *Script
	alone  bool // it must not be merged
	gaveUp bool // the transport has ended the last attempt
	first  command
	few    [9]any // the words of a short command
}

func (c *Call) made() bool { return c != nil && c.runner != nil }

// Reset makes the call ready for another use, and reports whether it could. It can if a
// merged call answered it, because then nothing else refers to its memory. After any
// other end, a client may still refer to it.
func (c *Call) Reset() bool {
	misuse.Made(c.made(), errCall)
	if !c.free {
		return false
	}
	*c = Call{}
	return true
}

// Script returns the script that is to run.
func (c *Call) Script() *Script {
	misuse.Made(c.made(), errCall)
	return c.script
}

// Key returns the first key. The others are in the same slot.
func (c *Call) Key() string {
	misuse.Made(c.made(), errCall)
	return c.keys[0]
}

// Budget returns the budget of the runner.
func (c *Call) Budget() time.Duration {
	misuse.Made(c.made(), errCall)
	return c.runner.budget
}

// Transport sends a command. It returns nil when the command has ended; the command then
// has its answer or its error. Any other error means that no caller waits for the command
// any more: it was withdrawn, or it is on its way. The context has the deadline of the
// call.
type Transport func(ctx context.Context, cmd Command) error

// Reply returns what Redis answered, as [Runner.Run] returns it. Before there is an
// answer, it returns nil.
func (c *Call) Reply() any {
	misuse.Made(c.made(), errCall)
	if c.whole {
		return c.number
	}
	return c.reply
}

// Int returns the reply if it is a whole number.
func (c *Call) Int() (n int64, is bool) {
	misuse.Made(c.made(), errCall)
	return c.number, c.whole
}

// Written reports whether the last attempt of the call was written to a connection, or
// began to be. A call that was not written and had no answer did not run.
func (c *Call) Written() bool {
	misuse.Made(c.made(), errCall)
	return c.written
}

// answer stores the reply.
func (c *Call) answer(cmd *command) {
	if cmd.whole {
		c.number, c.whole = cmd.number, true
		c.free = cmd == &c.sent.first
		return
	}
	c.reply = cmd.Val()
	c.number, c.whole = c.reply.(int64)
}

// Send makes the call once, within that budget. The errors are those of [Runner.Run].
func (c *Call) Send(ctx context.Context, budget time.Duration) error {
	return c.SendBy(ctx, budget, nil)
}

// SendBy is Send with another transport than the runner's client.
func (c *Call) SendBy(ctx context.Context, budget time.Duration, by Transport) error {
	if !c.made() {
		return &Error{Class: ErrConfiguration, Err: errCall}
	}
	if c.spent.Swap(true) {
		return &Error{Script: c.script.name, Class: ErrConfiguration, Err: errSpent}
	}
	s, r, call := c.script, c.runner, &c.sent
	call.begin(ctx, c.Asked, budget)
	call.polled = r.pipeline != nil // a pipeline asks for Done once, and only if it must wait
	if by != nil && !plain(c.args) {
		by = nil // in a batch, an argument that cannot be written would make the other calls fail too
	}
	call.by, call.script = by, s
	defer call.end()
	line := append(call.few[:0], "evalsha", nil, count(len(c.keys))) // each attempt fills in the script itself
	for i, key := range c.keys {
		if i == 0 && by != nil {
			c.key = key
			line = append(line, (*word)(&c.key))
			continue
		}
		line = append(line, key)
	}
	for _, arg := range c.args {
		if b, is := arg.([]byte); is && by != nil {
			arg = string(b) // a copy: a caller that has left may use the bytes again
		}
		line = append(line, arg)
	}

	for attempt := 0; ; attempt++ {
		cmd, err := r.process(call, attempt, line)
		c.written = cmd.Written()
		if err == nil || isNil(cmd, err) {
			err = cmd.check()
		}
		if err == nil {
			c.answer(cmd)
			return nil
		}
		judged := s.classify(err, cmd.Written())
		failure := &Error{Script: s.name, Class: judged.class, Err: s.place(err)}
		if judged.unknown {
			failure.Err = unknownReplyError{err}
		}
		switch {
		case ended(ctx) != nil:
			return ended(ctx)
		case call.isShort() && isDeadline(err): // the caller would have left before the answer
			return context.DeadlineExceeded
		case errors.Is(err, errUnmerged):
			call.alone = true
		case !judged.again:
			switch {
			case !isDeadline(err):
			case judged.class == ErrNotExecuted:
				failure.Err = errUnsent
			default:
				failure.Err = errBudget
			}
			return failure
		case line[0] == "evalsha" && redis.HasErrorPrefix(err, "NOSCRIPT No matching script"):
			// A new line, because a client whose caller has left may still refer to the
			// old one. Merger.Deliver does the same for merged calls.
			line = append([]any{"eval"}, line[1:]...)
		case !call.pause(attempt):
			return call.outOfTime(ctx, failure)
		}
	}
}

// outOfTime returns the error of a call that has no time for another attempt.
func (c *call) outOfTime(ctx context.Context, failure *Error) error {
	switch {
	case ended(ctx) != nil:
		return ended(ctx)
	case c.isShort() && (c.gaveUp || isCrowded(failure)): // with more time, the call would have its turn
		return context.DeadlineExceeded
	}
	return failure
}

// isNil reports whether Redis answered nil. If a sentinel answers nil, go-redis wraps
// that in the error of a dial, which does not count.
func isNil(cmd *command, err error) bool {
	return errors.Is(err, redis.Nil) && cmd.Written() && cmd.Err() == redis.Nil // not an error that wraps it
}

// plain reports whether go-redis can write all arguments.
func plain(args []any) bool {
	for _, arg := range args {
		switch arg.(type) {
		case string, []byte, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64, bool:
		default:
			return false
		}
	}
	return true
}

// command makes the command for one attempt to send the words.
func (c *call) command(ctx context.Context, attempt int, words []any) *command {
	cmd := &c.first
	if attempt > 0 {
		cmd, words = new(command), slices.Clone(words)
	}
	eval := words[0] != "evalsha"
	words[1] = &cmd.text
	cmd.Cmd = *redis.NewCmd(ctx, words...)
	cmd.text = text{of: cmd, script: c.script, eval: eval}
	cmd.alone = c.alone || eval
	cmd.budget = &c.budget
	return cmd
}
