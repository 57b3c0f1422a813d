package call

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/wire"
)

// Do makes the call within that budget. by sends it if it is not nil; otherwise the client
// does. Do makes another attempt only if the one before certainly did not run. The error is
// that of ctx if ctx has ended, and otherwise one that the script's Failure has made.
func (cl *Client) Do(ctx context.Context, c *Call, budget time.Duration, by Transport) error {
	s, call := c.script, &c.sent
	call.begin(ctx, c.Asked, budget)
	call.polled = cl.pipeline != nil // an AutoPipeliner does not poll Done first, so its first Done must already end with the budget
	if by != nil && !plain(c.args) {
		by = nil // in a batch, an argument that cannot be written would make the other calls fail too
	}
	call.by, call.script = by, s
	defer call.end()
	line := c.words(cl.isInline(call))

	for attempt := 0; ; attempt++ {
		cmd, err := cl.process(call, attempt, line)
		c.written = cmd.Written()
		if err = cmd.Fault(err); err == nil {
			c.answer(cmd)
			return nil
		}
		judged := s.Classify(err, cmd.Written())
		switch {
		case Ended(ctx) != nil:
			return Ended(ctx)
		case call.isShort() && isDeadline(err): // the caller would have left before the answer
			return context.DeadlineExceeded
		case errors.Is(err, wire.ErrUnmerged):
			call.unmerged = true
		case !judged.Again:
			return s.Fail(judged.Class, cause(err, judged))
		case line[0] == "evalsha" && redis.HasErrorPrefix(err, "NOSCRIPT No matching script"):
			// A new line, because a client whose caller has left may still refer to the
			// old one. Merger.Deliver does the same for merged calls.
			line = append([]any{"eval"}, line[1:]...)
		case !call.pause(attempt):
			return call.outOfTime(ctx, err, judged)
		}
	}
}

// outOfTime returns the error of a call that has no time for another attempt.
func (c *sent) outOfTime(ctx context.Context, err error, judged wire.Verdict) error {
	switch {
	case Ended(ctx) != nil:
		return Ended(ctx)
	case c.isShort() && (c.gaveUp || wire.IsCrowded(err)): // with more time, the call would have its turn
		return context.DeadlineExceeded
	}
	return c.script.Fail(judged.Class, cause(err, judged))
}

// cause returns what the error of a call has as its cause.
func cause(err error, judged wire.Verdict) error {
	switch {
	case judged.Unknown:
		return wire.UnknownReplyError{Reply: err}
	case !isDeadline(err):
		return err
	case judged.Class == wire.ErrNotExecuted:
		return errUnsent
	}
	return errBudget
}

// Ended returns ctx.Err(), but does not wait for a timer that is late.
func Ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// isDeadline reports whether the call's own context ended.
func isDeadline(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

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
