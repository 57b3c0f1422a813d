package limit

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/script"
)

// Observer hears of every decision when it was made, on the goroutine that
// asked for it: it must be quick and safe for concurrent use. The context is
// the caller's.
type Observer func(ctx context.Context, o Observation)

// Observation tells of one decision, for metrics and traces. It carries no
// subject, no key and no text of an error.
type Observation struct {
	// Limiter is the limiter's name.
	Limiter string
	// Outcome is what became of the call.
	Outcome Outcome
	// Decision is the decision, zero where there is none. Its Cause is one of
	// the four classes of core/script.
	Decision Decision
	// Cost is how many permits were asked for.
	Cost int64
	// Cause is the class of the error that kept Redis from deciding, one of
	// the four of core/script, with an Outcome of Failed or a degraded
	// decision; the context's error with Canceled; nil otherwise.
	Cause error
	// Duration is how long the decision took.
	Duration time.Duration
}

// Outcome is what became of a call.
type Outcome uint8

// The outcomes.
const (
	Allowed  Outcome = iota
	Denied           // by a limit
	Failed           // Redis could not decide, and the mode is FailClosed
	Canceled         // the caller's context ended
)

// String is the outcome in lower case, as metrics label it.
func (o Outcome) String() string {
	switch o {
	case Allowed:
		return "allowed"
	case Denied:
		return "denied"
	case Failed:
		return "failed"
	}
	return "canceled"
}

func outcomeOf(d *Decision, err error) Outcome {
	switch {
	case err == nil && d.Allowed:
		return Allowed
	case err == nil:
		return Denied
	case ask.IsCallers(err):
		return Canceled
	}
	return Failed
}

// told counts a decision and tells the observer of it.
func (c *counters) told(ctx context.Context, observer Observer, name string, cost int64, d Decision, err error, took time.Duration) {
	outcome := outcomeOf(&d, err)
	c.outcomes[outcome].Add(1)
	if d.Degraded {
		c.degraded.Add(1)
	}
	if observer == nil {
		return
	}
	d.grant = nil
	o := Observation{Limiter: name, Outcome: outcome, Cost: cost, Duration: took}
	switch {
	case outcome == Canceled:
		o.Cause = err
	case outcome == Failed:
		o.Cause = classOf(err)
	case d.Degraded:
		d.Cause = classOf(d.Cause)
		o.Cause = d.Cause
	}
	o.Decision = d
	observer(ctx, o)
}

func classOf(err error) error {
	if failure, ok := errors.AsType[*script.Error](err); ok {
		return failure.Class
	}
	return script.ErrFailed
}
