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

// Options are the options of [New]. The zero value is ready to use. New copies them.
type Options struct {
	// Wait is how long a call may wait for its permits, as [limit.Limiter.WaitFor] says.
	// With 0 it does not wait. It never waits for the end of a hold that Redis did not confirm.
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

// ErrOnHold is the Reason of a [limit.LimitedError] if the subject is on hold, and Redis did not
// know it.
var ErrOnHold = errors.New("outgoing: the subject is on hold, because its last answer said so")

// New returns the Calls of a limiter, which needs Options.Holds. The error joins every
// fault, each with its field and the remedy. New panics on a limiter or a Concurrency that no
// New has made. It sends nothing.
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
	if own.Concurrency != nil {
		own.Concurrency.Name() // panics on one that nothing made
	}
	return &Calls{limiter: limiter, opts: own, refused: newBySubject[refusal](), untold: newBySubject[time.Time]()}, nil
}

// Call is an admitted call. End it once. Its methods may be called from any
// goroutine.
type Call struct {
	of       *Calls
	subject  string
	began    time.Time
	cost     int64
	decision limit.Decision
	slot     *inflight.Slot
	onError  func(error)
}

var (
	errCalls = errors.New("outgoing: a nil or zero Calls: make one with New, and check its error first")
	errCall  = errors.New("outgoing: a nil or zero Call: get one from Begin, and check its error first")
)

// Begin asks for the permits of a call. The subject is the partner, or whatever it counts
// by, such as an account there.
//
// The error is a [*limit.LimitedError] if the limit is reached or the partner wants no
// calls now, ctx.Err() if ctx ended, and otherwise that of [limit.Limiter.TakeN] or of
// [inflight.Limiter.Try]. Begin costs what these cost, and a round trip more while Redis has
// not confirmed a hold.
//
// onError, if it is not nil, is told of errors for operators, which may name keys: why Redis
// did not decide, if the limiter's failure mode did, also on a denial; that Redis did not
// confirm a hold; and a [*limit.DroppedError] for a settlement that was given up after five
// minutes or more, then after End and on a goroutine of its own.
func (c *Calls) Begin(ctx context.Context, subject string, cost int64, onError func(error)) (*Call, error) {
	misuse.Context(ctx)
	if c == nil || c.limiter == nil {
		return nil, errCalls
	}
	if onError == nil {
		onError = func(error) {}
	}
	call, err := c.begin(ctx, subject, cost, onError)
	cause := call.cause()
	if denied, is := errors.AsType[*limit.LimitedError](err); is {
		cause = denied.Decision.Cause
	}
	if cause != nil {
		told := false
		defer func() {
			if !told && call != nil { // onError has panicked
				call.End(ctx, -1)
			}
		}()
		onError(cause)
		told = true
	}
	return call, err
}

func (c *Calls) begin(ctx context.Context, subject string, cost int64, onError func(error)) (*Call, error) {
	if err := c.onHold(ctx, subject); err != nil {
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
	call := &Call{of: c, subject: subject, began: time.Now(), cost: cost, decision: d, onError: onError}
	err = c.onHold(ctx, subject) // another call's answer may have said so while this one waited
	if err == nil && c.opts.Concurrency != nil {
		call.slot, err = c.slot(ctx, subject)
	}
	if err != nil {
		_ = d.Refund(context.WithoutCancel(ctx)) // it goes on in the background, or there is nothing to give back
		return nil, err
	}
	return call, nil
}

func (c *Calls) slot(ctx context.Context, subject string) (*inflight.Slot, error) {
	slot, err := c.opts.Concurrency.Try(ctx, subject)
	if err != nil || slot.Allowed {
		return slot, err
	}
	return nil, &limit.LimitedError{RetryAfter: slot.RetryAfter, Decision: limit.Decision{
		Policy: slot.Policy, Limit: slot.Limit, RetryAfter: slot.RetryAfter, Degraded: slot.Degraded, Cause: slot.Cause,
	}}
}

// cause says why Redis did not decide, or nil if it did.
func (c *Call) cause() error {
	switch {
	case c == nil:
		return nil
	case c.decision.Cause == nil && c.slot != nil:
		return c.slot.Cause
	}
	return c.decision.Cause
}

// onHold denies calls while there is a hold that Redis has not confirmed, and tells Redis again.
func (c *Calls) onHold(ctx context.Context, subject string) error {
	until, known := c.untold.find(subject)
	if !known {
		return nil
	}
	rest := time.Until(until)
	if rest <= 0 || c.limiter.Hold(context.WithoutCancel(ctx), subject, rest) == nil {
		c.untold.change(subject, func(now time.Time, _ bool) (time.Time, bool) { return now, now.After(until) })
	}
	if rest <= 0 {
		return nil
	}
	return &limit.LimitedError{RetryAfter: max(time.Until(until), time.Millisecond), Reason: ErrOnHold}
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
// twice as long, and so on up to MaxHold, until an answer is no refusal. Answers to calls that began before
// the last refusal change nothing in that.
//
// Answered costs a round trip if it puts the subject on hold, and otherwise none. It does not
// end with ctx. If Redis does not confirm the hold, this process begins no call of the subject
// until the hold is over or Redis has confirmed it: each attempt to begin one tells Redis again,
// also after a [limit.Limiter.Reset]. A limiter of shadows denies none of these calls.
func (c *Call) Answered(ctx context.Context, hold time.Duration, refused bool) {
	misuse.Made(c != nil && c.of != nil, errCall)
	misuse.Context(ctx)
	switch {
	case !refused:
		accepted(c.of.refused, c.subject, c.began)
	case hold <= 0:
		hold = next(c.of.refused, c.subject, c.began, c.of.opts.MaxHold)
	}
	if hold <= 0 {
		return
	}
	hold = min(hold, c.of.opts.MaxHold)
	until := time.Now().Add(hold)
	err := c.of.limiter.Hold(context.WithoutCancel(ctx), c.subject, hold)
	if err == nil {
		return
	}
	if !inside.OfLimiter(c.of.limiter).IsShadow {
		c.of.untold.change(c.subject, func(was time.Time, known bool) (time.Time, bool) {
			if known && was.After(until) {
				return was, true
			}
			return until, true
		})
	}
	c.onError(err)
}

// End ends a call: its slot of Concurrency is free, and the cost is settled to used, as
// [limit.Decision.Settle] says. A used below 0 keeps the cost, and settles it only if the
// limiter has a limit.WithLease. End does not end with ctx. What Redis does not confirm goes
// on in the background. End costs a round trip for each of the two, and panics on a nil or
// zero Call.
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
	_, err := c.decision.Settle(undo.WithDropped(ctx, c.onError), used)
	if dropped, is := errors.AsType[*limit.DroppedError](err); is {
		c.onError(dropped)
	}
}

// Contained runs f. If f panics, the panic is logged, at most once a minute, and ends there.
// It is for what a client library runs on a goroutine of its own, where no caller can recover.
func Contained(f func()) {
	var err error
	defer background.Recover(&err)
	f()
}
