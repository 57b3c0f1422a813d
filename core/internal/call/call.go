// Package call makes one call of a script: at most once, and within its budget.
package call

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/queue"
	"github.com/neap-go/neap/core/internal/wire"
)

// Call is one call of a script. It has, in one piece of memory, all that a call needs if
// nothing goes wrong. The zero Call is ready for Set. It is not safe for concurrent use.
type Call struct {
	// Asked is when the budget begins. The zero time means when the call is sent. If the
	// caller has just read the clock, setting Asked saves another reading.
	Asked time.Time

	script *wire.Script
	keys   []string
	key    string // the first key; the words that are sent point to it
	args   []any
	sent   sent

	written bool // the last attempt was written, or began to be
	free    bool // a merged call answered it, so nothing else holds it
	reply   any
	number  int64 // the reply, if it is a whole number
	whole   bool
	told    []int64 // what a merged call told of its run, in which this call has that place
	place   int64
}

// sent is what is sent. A client whose caller has left may still refer to it. Only Reset
// makes it usable again.
type sent struct {
	budget

	by       Transport // nil if the client sends it by itself
	script   *wire.Script
	unmerged bool // it must not be merged
	gaveUp   bool // the transport stopped waiting before the command of the last attempt had ended
	first    wire.Command
	few      [11]any // the words of a short command
}

// Transport sends commands. A queue is one.
type Transport interface {
	// Do sends a [wire.Command]. It returns nil when the command has ended; the command
	// then has its answer or its error. Any other error means that no caller waits for the
	// command any more: it was withdrawn, or it is on its way. The context has the deadline
	// of the call.
	Do(ctx context.Context, cmd queue.Call) error
}

// Set says what is called. It returns an error if the keys cannot be used. It panics if the
// Call is in use: only Reset makes it usable again.
func (c *Call) Set(s *wire.Script, keys []string, args []any) error {
	misuse.Made(c.script == nil, errUsed)
	c.script, c.keys, c.args = s, keys, args
	return checkKeys(keys)
}

// Reset makes the call ready for another use, and reports whether it could. It can if a
// merged call answered it, because then nothing else refers to its memory. After any
// other end, a client may still refer to it.
func (c *Call) Reset() bool {
	if !c.free {
		return false
	}
	*c = Call{}
	return true
}

// Script returns the script that is to run.
func (c *Call) Script() *wire.Script { return c.script }

// Key returns the first key. The others are in the same slot.
func (c *Call) Key() string { return c.keys[0] }

// Reply returns what Redis answered. Before there is an answer, it returns nil.
func (c *Call) Reply() any {
	if c.whole {
		return c.number
	}
	return c.reply
}

// Int returns the reply if it is a whole number.
func (c *Call) Int() (n int64, is bool) { return c.number, c.whole }

// Told returns what a merged call told of its run, and the place of this call in the run,
// from 1 on. told is nil if no merged call answered it.
func (c *Call) Told() (told []int64, place int64) { return c.told, c.place }

// Written reports whether the last attempt of the call was written to a connection, or
// began to be. A call that was not written and had no answer did not run.
func (c *Call) Written() bool { return c.written }

// answer stores the reply.
func (c *Call) answer(cmd *wire.Command) {
	if c.told, c.place = cmd.Told(); c.told != nil {
		c.free = cmd == &c.sent.first
		return
	}
	if c.number, c.whole = cmd.Val().(int64); !c.whole {
		c.reply = cmd.Val()
	}
}

// words returns the words of the call. The second is missing, because each attempt has its
// own. If inline is false, another goroutine than the caller's may write them.
func (c *Call) words(inline bool) []any {
	line := append(c.sent.few[:0], "evalsha", nil, wire.Count(len(c.keys)))
	for i, key := range c.keys {
		if i == 0 && c.sent.by != nil {
			c.key = key
			line = append(line, (*wire.Word)(&c.key))
			continue
		}
		line = append(line, key)
	}
	for _, arg := range c.args {
		if b, is := arg.([]byte); is && !inline {
			arg = string(b) // a copy: a caller that has left may use the bytes again
		}
		line = append(line, arg)
	}
	return line
}

var (
	errBudget   = errors.New("no answer within the budget")
	errUnsent   = errors.New("not sent within the budget")
	errUsed     = errors.New("call: this Call was made before")
	errNoKeys   = errors.New("a script needs at least one key")
	errManyTags = errors.New("the keys do not share one {hash tag}, so a cluster could not run the script")
)

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
