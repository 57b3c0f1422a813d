package store

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/neap-go/neap/core/script"
)

// When a breaker opens, and for how long. Twenty failures in a row do not
// happen by chance while one call in three still succeeds; the ratio is for
// servers that now and then do answer.
const (
	tripInARow  = 20
	tripRatio   = 0.8
	tripOf      = 50 // calls at least for the ratio
	tripBudgets = 40 // how long failures count: as many budgets, since a lone caller spends one on each
	tripBuckets = 10
	hiccup      = 4 // budgets, for which failures must last: of a hiccup all callers of a moment fail together
	openFor     = 250 * time.Millisecond
)

// errOpen is the cause of a call that was not sent.
var errOpen = errors.New("not asked, since Redis did not answer lately")

// breaker spares callers a node that does not answer: after a row of failures it
// lets one call through every quarter second, until one is answered.
type breaker struct {
	*gobreaker.CircuitBreaker[any]

	node *node
}

func newBreaker(n *node, budget time.Duration) *breaker {
	var row, first time.Time // when the row, and what is counted, began to fail
	return &breaker{node: n, CircuitBreaker: gobreaker.NewCircuitBreaker[any](gobreaker.Settings{
		MaxRequests:  1,
		Interval:     tripBudgets * budget,
		BucketPeriod: tripBudgets * budget / tripBuckets,
		Timeout:      openFor,
		ReadyToTrip: func(n gobreaker.Counts) bool { // after each failure, under the breaker's lock
			now := time.Now()
			if n.ConsecutiveFailures == 1 {
				row = now
			}
			if n.TotalFailures == 1 {
				first = now
			}
			return n.ConsecutiveFailures >= tripInARow && now.Sub(row) >= hiccup*budget ||
				n.Requests >= tripOf && float64(n.TotalFailures) >= tripRatio*float64(n.Requests) &&
					now.Sub(first) >= hiccup*budget
		},
		IsSuccessful: answered,
		IsExcluded: func(err error) bool {
			_, is := errors.AsType[overtaken](err)
			return is
		},
	})}
}

// answered reports whether Redis answered, be it with an error or a refusal: on a
// full server what ends or takes back something must not be kept from trying.
func answered(err error) bool {
	if err == nil {
		return true
	}
	failure, is := errors.AsType[*script.Error](err)
	if !is {
		return false // the caller's own context ended, after half the budget
	}
	if errors.Is(failure.Class, script.ErrFailed) || errors.Is(failure.Class, script.ErrConfiguration) {
		return true
	}
	_, is = errors.AsType[redis.Error](failure.Err)
	return is
}

// overtaken is the error of a caller whose own context ended before half the budget
// was spent, which tells nothing of Redis.
type overtaken struct{ error }

// send makes a call within that budget, unless the breaker is open. Essential calls
// pass it then, and are not counted.
func (b *breaker) send(ctx context.Context, call *script.Call, budget time.Duration) (any, error) {
	if call.Script().IsEssential() && b.State() != gobreaker.StateClosed {
		reply, err := call.Send(ctx, budget)
		b.node.note(err, true)
		return reply, err
	}
	reply, err := b.Execute(func() (any, error) {
		began := time.Now()
		reply, err := call.Send(ctx, budget)
		if err != nil && isCallers(err) && time.Since(began) < budget/2 {
			return nil, overtaken{err}
		}
		return reply, err
	})
	switch early, is := errors.AsType[overtaken](err); {
	case is:
		return nil, early.error
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		err = &script.Error{Script: call.Script().Name(), Class: script.ErrNotExecuted, Err: errOpen}
		b.node.note(err, true)
		return nil, err
	}
	b.node.note(err, !answered(err) && b.State() != gobreaker.StateClosed)
	return reply, err
}

// isCallers reports whether an error of a call is that of the caller's own context.
func isCallers(err error) bool {
	_, is := errors.AsType[*script.Error](err)
	return !is
}
