package outgoing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/limit"
)

// Options are the options of [New]. New copies them.
type Options struct {
	// Wait is how long a call may wait for its permits, as [limit.Limiter.WaitFor] says.
	// With 0 it does not wait.
	Wait time.Duration
	// Concurrency also bounds how many calls of a subject are in flight at once. A call
	// that has its permits does not wait for a slot: if there is none, the call is denied
	// and the permits are given back, which costs another round trip. Nil bounds nothing.
	Concurrency *inflight.Limiter
	// Settles says that End is told what calls have used. New then refuses a limiter that
	// cannot settle.
	Settles bool
	// MaxHold is the longest time for which an answer can put a subject on hold: a second to
	// 30 days. 0 means an hour.
	MaxHold time.Duration
}

const (
	leastHold   = time.Second // for the first answer that does not say how long
	mostHold    = 30 * 24 * time.Hour
	defaultHold = time.Hour
)

// Calls limits calls. It is safe for concurrent use. The zero Calls is not usable; use New.
type Calls struct {
	limiter *limit.Limiter
	opts    Options
	refused *bySubject[refusal]
	untold  *bySubject[time.Time] // when holds end that Redis did not confirm
}

// ErrOnHold is the Reason of a [limit.LimitedError] if the subject is on hold, and Redis may not
// know it yet.
var ErrOnHold = errors.New("outgoing: the subject is on hold, because its last answer said so")

// New returns the Calls of a limiter, which needs Options.Holds. The error joins every
// fault, each with its field and the remedy. It sends nothing.
func New(limiter *limit.Limiter, opts *Options) (*Calls, error) {
	var own Options
	if opts != nil {
		own = *opts
	}
	var c options.Check
	c.Duration("MaxHold", &own.MaxHold, leastHold, mostHold, defaultHold)
	if own.Wait < 0 {
		c.Faultf("Wait is %v: use a positive duration, or 0 for no wait", own.Wait)
	}
	if limiter == nil {
		c.Faultf("the limiter is nil: make one with limit.New, and check its error first")
	} else {
		name, of := limiter.Name(), inside.OfLimiter(limiter) // Name panics on one that nothing made
		if !of.Holds {
			c.Faultf("limiter %q cannot put a subject on hold, so what a partner says would be lost: set its Options.Holds", name)
		}
		if (own.Settles || of.HasLease) && of.Unsettled != nil {
			c.Faultf("limiter %q cannot settle: %w", name, of.Unsettled)
		}
	}
	if err := c.Err(); err != nil {
		return nil, fmt.Errorf("outgoing.New: %w", err)
	}
	return &Calls{limiter: limiter, opts: own, refused: newBySubject[refusal](), untold: newBySubject[time.Time]()}, nil
}

// Call is a call that may be made. End it once. Its methods may be called from any
// goroutine.
type Call struct {
	// Cause says why Redis did not decide; the limiter's failure mode did. It is nil if
	// Redis decided. Its text may name keys.
	Cause error
	// OnDropped, if it is set before End, is told of a settlement that was given up after
	// five minutes or more in the background. It may be called after End, on a goroutine of
	// its own. The error is a [*limit.DroppedError].
	OnDropped func(error)

	of       *Calls
	subject  string
	began    time.Time
	cost     int64
	decision limit.Decision
	slot     *inflight.Slot
}

var (
	errCalls = errors.New("outgoing: a nil or zero Calls: make one with New, and check its error first")
	errCall  = errors.New("outgoing: a nil or zero Call: get one from Begin, and check its error first")
)

// Begin asks for the permits of a call. The subject is the partner, or whatever it counts
// by, such as an account there.
//
// The error is a [*limit.LimitedError] if the limit is reached or the partner wants no
// calls now, ctx.Err() if ctx ended, and otherwise that of [limit.Limiter.TakeN]. Begin
// costs what TakeN costs, and what Concurrency costs.
func (c *Calls) Begin(ctx context.Context, subject string, cost int64) (*Call, error) {
	misuse.Context(ctx)
	if c == nil || c.limiter == nil {
		return nil, errCalls
	}
	if err := c.tellAgain(ctx, subject); err != nil {
		return nil, err
	}
	d, err := c.take(ctx, subject, cost)
	switch {
	case errors.Is(err, limit.ErrQueue):
		return nil, &limit.LimitedError{RetryAfter: max(c.opts.Wait, time.Millisecond), Reason: err} // by then those have left that wait here
	case err != nil:
		return nil, err
	case !d.Allowed:
		return nil, &limit.LimitedError{RetryAfter: d.RetryAfter, Decision: d}
	}
	call := &Call{Cause: d.Cause, of: c, subject: subject, began: time.Now(), cost: cost, decision: d}
	if c.opts.Concurrency == nil {
		return call, nil
	}
	slot, err := c.opts.Concurrency.Try(ctx, subject)
	if err == nil && !slot.Allowed {
		err = &limit.LimitedError{RetryAfter: slot.RetryAfter, Decision: limit.Decision{
			Policy: slot.Policy, Limit: slot.Limit, RetryAfter: slot.RetryAfter, Degraded: slot.Degraded, Cause: slot.Cause,
		}}
	}
	if err != nil {
		_ = d.Refund(context.WithoutCancel(ctx)) // it goes on in the background, or there is nothing to give back
		return nil, err
	}
	call.slot = slot
	if call.Cause == nil {
		call.Cause = slot.Cause
	}
	return call, nil
}

// tellAgain tells Redis of a hold that it has not confirmed. Until it has, the call is denied.
func (c *Calls) tellAgain(ctx context.Context, subject string) error {
	until, known := c.untold.find(subject)
	if !known {
		return nil
	}
	rest := time.Until(until)
	if rest > 0 && c.limiter.Hold(context.WithoutCancel(ctx), subject, rest) != nil {
		return &limit.LimitedError{RetryAfter: rest, Reason: ErrOnHold}
	}
	c.untold.change(subject, func(now time.Time, _ bool) (time.Time, bool) { return now, now.After(until) })
	return nil
}

func (c *Calls) take(ctx context.Context, subject string, cost int64) (limit.Decision, error) {
	if c.opts.Wait > 0 {
		return c.limiter.WaitFor(ctx, subject, cost, c.opts.Wait)
	}
	return c.limiter.TakeN(ctx, subject, cost)
}

// Answered says what an answer means for the calls after it. hold is for how long the
// partner wants none, or 0 if the answer does not say. refused reports that the partner
// refused the call because there were too many. If such an answer does not say for how long,
// the subject is on hold for a second, and after the next such answer to this process for
// twice as long, and so on, until an answer is no refusal. Answers to calls that began before
// the last refusal change nothing in that.
//
// Answered costs a round trip if it puts the subject on hold, and otherwise none. It does not
// end with ctx. If Redis does not confirm the hold, Answered returns its error. Then this
// process begins no call of the subject until the hold is over, and each attempt to begin one
// tells Redis again.
func (c *Call) Answered(ctx context.Context, hold time.Duration, refused bool) error {
	misuse.Context(ctx)
	switch {
	case c == nil || c.of == nil:
		return errCall
	case !refused:
		accepted(c.of.refused, c.subject, c.began)
	case hold <= 0:
		hold = next(c.of.refused, c.subject, c.began, c.of.opts.MaxHold)
	}
	if hold <= 0 {
		return nil
	}
	hold = min(hold, c.of.opts.MaxHold)
	until := time.Now().Add(hold)
	err := c.of.limiter.Hold(context.WithoutCancel(ctx), c.subject, hold)
	if err != nil {
		c.of.untold.change(c.subject, func(was time.Time, known bool) (time.Time, bool) {
			if known && was.After(until) {
				return was, true
			}
			return until, true
		})
	}
	return err
}

// End ends a call: its slot of Concurrency is free, and if used is 0 or above, the cost is
// settled to that, as [limit.Decision.Settle] says. End does not end with ctx. What Redis
// does not confirm goes on in the background. End costs a round trip for each of the two.
func (c *Call) End(ctx context.Context, used int64) {
	misuse.Made(c != nil && c.of != nil, errCall)
	misuse.Context(ctx)
	ctx = context.WithoutCancel(ctx)
	if c.slot != nil {
		_ = c.slot.Release(ctx) // it goes on in the background
	}
	if used < 0 && inside.OfLimiter(c.of.limiter).HasLease {
		used = c.cost // or else the lease would give the estimate back
	}
	if used < 0 {
		return
	}
	if c.OnDropped != nil {
		ctx = undo.WithDropped(ctx, c.OnDropped)
	}
	_, err := c.decision.Settle(ctx, used)
	if dropped, is := errors.AsType[*limit.DroppedError](err); is && c.OnDropped != nil {
		c.OnDropped(dropped)
	}
}

// Contained runs f. If f panics, the panic is logged with its stack and ends there. It is for
// what a client library runs on a goroutine of its own, where no caller can recover.
func Contained(f func()) {
	var err error
	defer background.Recover(&err)
	f()
}
