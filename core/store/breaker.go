package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/queue"
	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// These constants say when a breaker opens, and for how long. Twenty failures in a row do
// not happen by chance while two calls in three still succeed. The ratio is for servers
// that answer now and then.
const (
	tripInARow   = 20
	tripRatio    = 0.8
	tripOf       = 50 // the fewest calls for the ratio
	tripBudgets  = 40 // failures count for so many budgets, because a lone caller spends a budget on each
	tripBuckets  = 10
	leastBudgets = 4 // failures must last for so many budgets: if a machine stands still, all callers of a moment fail together
	openFor      = 250 * time.Millisecond
)

// errOpen is the cause of the error of a call that was not sent.
var errOpen = errors.New("not sent, since Redis did not answer lately")

// breaker spares callers the wait for a node that does not answer. After many failures in
// a row it lets one call through every quarter of a second, until one is answered. It
// learns how calls ended from sendAlone, and from Note for calls in the queue and probes.
type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[any]

	node    *node
	calls   *call.Client
	budget  time.Duration
	open    atomic.Bool  // true also while it is half-open
	failed  atomic.Int64 // when a call last had no answer or was held back
	left    atomic.Bool  // it is no longer used
	probing atomic.Bool
	queue   call.Transport // nil if calls are not sent in batches
}

func newBreaker(of *node, calls *call.Client, budget time.Duration) *breaker {
	var row, half time.Time // when the row of failures began, and when half of the failures that can trip it had happened
	b := &breaker{node: of, calls: calls, budget: budget}
	b.TwoStepCircuitBreaker = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		MaxRequests:  1,
		Interval:     tripBudgets * budget,
		BucketPeriod: tripBudgets * budget / tripBuckets,
		Timeout:      openFor,
		ReadyToTrip: func(n gobreaker.Counts) bool { // runs after each failure, under the breaker's lock
			now := time.Now()
			if n.ConsecutiveFailures == 1 {
				row = now
			}
			if n.TotalFailures == tripOf/2 {
				half = now
			}
			return n.ConsecutiveFailures >= tripInARow && now.Sub(row) >= leastBudgets*budget ||
				n.Requests >= tripOf && float64(n.TotalFailures) >= tripRatio*float64(n.Requests) &&
					now.Sub(half) >= leastBudgets*budget
		},
		OnStateChange: func(_ string, from, to gobreaker.State) {
			b.open.Store(to != gobreaker.StateClosed)
			switch {
			case b.left.Load(): // another breaker has replaced it
			case from == gobreaker.StateClosed:
				of.open.Add(1)
			case to == gobreaker.StateClosed:
				of.open.Add(-1)
			}
		},
		IsSuccessful: answered,
		IsExcluded: func(err error) bool {
			_, is := errors.AsType[gaveUpError](err)
			return is || background.IsPanic(err) || isUnwritable(err)
		},
	})
	return b
}

// stale reports whether the breaker is open and had no call for so long that its state
// means nothing any more.
func (b *breaker) stale() bool {
	return b.open.Load() && b.node.now()-b.failed.Load() > int64(forgotten)
}

// answered reports whether a call was answered, even if the answer is an error or a
// refusal. So a full server does not open the breaker, and releases and conclusions still
// reach it.
func answered(err error) bool {
	failure, is := errors.AsType[*script.Error](err)
	return err == nil || is && failure.Answered()
}

// isCallers reports whether an error of a call is the end of the caller's own context.
func isCallers(err error) bool {
	_, is := errors.AsType[*script.Error](err)
	return !is
}

// isUnwritable reports whether an argument of a call cannot be written. That says nothing
// about Redis.
func isUnwritable(err error) bool {
	failure, is := errors.AsType[*script.Error](err)
	return is && wire.IsUnwritable(failure.Err)
}

// gaveUpError is the error of a call whose caller's context ended before the budget. It
// says nothing about Redis.
type gaveUpError struct{ error }

// send makes a call within that budget. Calls of scripts that are Batched go through the
// queue, unless the breaker is open.
func (b *breaker) send(ctx context.Context, c *call.Call, budget time.Duration) error {
	if b.queue != nil && c.Script().IsBatched() && !b.open.Load() {
		err := b.calls.Do(ctx, c, budget, b.queue)
		if !answered(err) {
			err = b.node.explain(err)
		}
		return err
	}
	return b.sendAlone(ctx, c, budget)
}

// isShort reports whether the caller's own deadline ends a call before its budget does.
func isShort(ctx context.Context, due time.Time) bool {
	deadline, has := ctx.Deadline()
	return has && deadline.Before(due)
}

// sendAlone makes a call without the queue. While the breaker is open, it sends only
// essential calls, and does not count them. While it is half-open, it sends and counts one
// call. A short call that is not essential is held back in both states, because it has less
// time than Redis has. A probe then finds out whether Redis answers again.
func (b *breaker) sendAlone(ctx context.Context, c *call.Call, budget time.Duration) error {
	if c.Asked.IsZero() {
		c.Asked = time.Now()
	}
	due := c.Asked.Add(budget)
	short := isShort(ctx, due)
	if b.open.Load() && (short || b.probing.Load()) && !c.Script().IsEssential() {
		b.probe(c.Key(), budget)
		return b.holdBack(c)
	}
	send := func() error {
		err := b.calls.Do(ctx, c, budget, nil)
		if err != nil && isCallers(err) && (short || time.Now().Before(due)) {
			return gaveUpError{err}
		}
		return err
	}
	err := b.counted(send)
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		if !c.Script().IsEssential() {
			return b.holdBack(c)
		}
		err = send()
	}
	if early, is := errors.AsType[gaveUpError](err); is {
		b.probe(c.Key(), budget)
		return early.error
	}
	switch {
	case background.IsPanic(err), isUnwritable(err):
		return err
	case answered(err):
		b.node.answered()
		return err
	}
	lost := err
	if isCallers(err) { // the caller left, and the call went on until its budget ended
		lost = errDoubt
		if !c.Written() {
			lost = errNotSent
		}
	}
	b.failed.Store(b.node.unanswered(lost, 1))
	if !c.Written() {
		b.node.connect()
	}
	return b.node.explain(err)
}

// counted makes a call and counts how it ended, or returns the error of a breaker that lets no
// call through. A call does not count if a hook ends its goroutine.
func (b *breaker) counted(send func() error) error {
	done, err := b.Allow()
	if err != nil {
		return err
	}
	err = gaveUpError{context.Canceled}
	defer func() { done(err) }()
	err = send()
	return err
}

// holdBack returns the error of a call that is not sent.
func (b *breaker) holdBack(c *call.Call) error {
	b.failed.Store(b.node.heldBack())
	return b.node.explain(&script.Error{Script: c.Script().Name(), Class: script.ErrNotExecuted, Err: errOpen})
}

// Note notes how a batch or a probe ended.
func (b *breaker) Note(r queue.Result, calls int) {
	var err error
	switch r {
	case queue.Unanswered, queue.Unknown:
		err = errDoubt
	case queue.Unsent:
		err = errNotSent
	default:
	}
	_ = b.counted(func() error { return err })
	if err == nil {
		b.node.answered()
		return
	}
	if r != queue.Unknown { // the node has been told
		b.failed.Store(b.node.unanswered(err, calls))
	}
}

var (
	errNoAnswer = errors.New("no answer in time")
	errDoubt    = &script.Error{Class: script.ErrMaybeExecuted, Err: errNoAnswer}
	errNotSent  = &script.Error{Class: script.ErrNotExecuted, Err: errNoAnswer}
)
