package gate

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/limit"
)

// RateLimitOptions are the options of [RateLimit]. Their functions must be safe for
// concurrent use; their panics propagate to the request.
type RateLimitOptions struct {
	// Skip lets a request pass uncounted, such as a health check.
	Skip func(Request) bool
	// Cost returns how many permits a request takes. With nil each request takes 1. A
	// cost below 0, or above what the limiter can ever grant, is refused with a 400,
	// because waiting would not help. An error is answered like that of a Key.
	Cost func(Request) (int64, error)
	// Policies returns the policies of a request, with the numbers of its plan: from a
	// constant, a database, or a claim of a token. They may change while the process
	// runs. They replace the limiter's own policies, as limit.Limiter.With says. If
	// Policies returns none, the limiter's own policies stay.
	//
	// You need not make a limiter for each plan: the gate prepares equal policies once.
	// It keeps the last 16,384 that differ.
	//
	// An error is answered like that of a Key. So are numbers that no policy can have. If
	// the plan of a caller is not known, return the policies of a plan for such callers,
	// and no error.
	Policies func(Request) ([]limit.Policy, error)
	// Wait is how long a request may wait for its permits before it is admitted, as
	// [limit.Limiter.WaitFor] says. With 0 no request waits. A negative Wait panics at
	// wiring.
	//
	// Requests of a subject are served in the order in which they came to this process. A
	// request is denied immediately if its permits cannot be there in time. Its
	// Retry-After then says when they would be free, after those of the requests that
	// wait before it. The limiter's MaxWaiting bounds how many requests wait.
	//
	// With Settle a request is denied immediately only if no other request of its subject
	// runs in this process. Otherwise those that run may settle to less, and then the
	// first request in the queue asks again.
	//
	// A client that goes away leaves the queue, except on Fiber and by default on Hertz,
	// which do not report it. Give the server a WriteTimeout that is longer than Wait.
	Wait time.Duration
	// Count reports whether an answer with this status counts, as [OnlyFailures] does.
	// With nil every admitted request counts. If the answer does not count, its permits
	// are given back when the handler has returned. That happens before the response
	// ends, unless the handler flushed all of it. So a request in flight counts until its
	// outcome is known.
	//
	// Count costs a second round trip, which does not end when the client goes away. If
	// Redis does not confirm the refund, it goes on in the background, as
	// [limit.Decision.Refund] says. Count also costs a copy of the request, except on
	// Fiber and Hertz.
	//
	// Some outcomes count without a call of Count:
	//
	//   - A panic, an answer left to middleware outside, and a connection that was taken
	//     over before a status was sent: the gate does not see these outcomes.
	//   - A refusal by a gate further in ([Reply.Refused]), whatever its status.
	//   - An empty 200 if the request's context has ended, or the context that a gate of
	//     this package further in has made. The cause may be a client that hung up, a
	//     deadline that passed or a lock that was lost. Frameworks send an empty 200 for
	//     a handler that gives up.
	//
	// Count is asked about any other answer, even if the client is gone: a 200 with a
	// body, a 200 that was flushed, a 204. It is also asked about the empty 200 of a
	// handler that returns for another reason, such as a body that it could not read, or
	// a deadline that was set by middleware between the gate and the handler. Let such a
	// handler write a status, and mount such middleware outside the gate. Also mount
	// middleware that compresses answers outside the gate: for a handler that gives up it
	// writes a footer, which looks like a body.
	Count func(status int) bool
	// Settle returns what an admitted request cost in the end, such as the tokens that a
	// model used. What the request took at first was an estimate. When the handler has
	// returned, and on Fiber and Hertz when its stream has ended, the gate settles the
	// decision to the number that Settle returns, as [limit.Decision.Settle] says. A
	// number below 0 keeps the estimate.
	//
	// Settle gets the request with only its context, method, host, path, query, route and
	// peer. It gets the answer without its body. The answer is nil if the gate does not
	// see it, for example after a panic. httputil.ReverseProxy panics when the client
	// goes away or the upstream breaks off. So for a nil answer return what was
	// delivered, and never 0. If a gate further in refuses the request ([Reply.Refused]),
	// nothing was used: return 0.
	//
	// If Redis does not confirm it, Settle goes on in the background, as
	// [limit.Decision.Settle] says. OnError is told if it is given up. With InContext the
	// handler finds the decision, and may settle it itself.
	//
	// Settle costs a second round trip and a copy of the request.
	Settle func(Request, *Reply) int64
	// Clamp lowers a cost to the most that the limiter can grant, instead of answering
	// with a 400. It is for estimates that may be too high.
	Clamp bool
	// Headers are the fields to send; the zero value is [HeadersIETF]. Their numbers are
	// those of the moment when the request was admitted, before anything was given back.
	Headers Headers
	// InContext puts the decision into the request's context, where the handler finds it
	// with [limit.FromContext]. If several gates do so, the handler finds the decision of
	// the innermost one. It costs a copy of the request, except on Fiber and Hertz.
	InContext bool
	// Render makes the answer to a request that may not run. Nil sends
	// application/problem+json. A Status of 0 keeps the status of the denial. The header
	// fields of the denial are added unless the Reply has its own.
	Render func(Denial) Reply
	// OnError is told of errors, which are for operators: they may name keys. With nil
	// they are dropped, and the log tells of the first 500. OnError is told of
	//
	//   - each request that is answered with a 500 or 503: a function such as Key, Cost or
	//     Policies returned an error that is not a refusal, or the wiring is wrong
	//     ([ErrWiring]), or Redis did not answer in time,
	//   - each decision that was made without Redis, once for each request,
	//   - a settlement or a refund by the gate that was given up: after five minutes or
	//     more in the background, or at once if 100,000 others are there. The error is a
	//     [*limit.DroppedError], which says what should have been charged. The handler has
	//     returned by then, and OnError may run on a goroutine of its own. The Request has
	//     only its context, method, host, path, query, route and peer.
	//
	// OnError is not told of a client that went away.
	OnError func(Request, error)
}

// RateLimit returns a gate that admits what the limiter admits for the subject that key
// makes from the request. The decision costs what limit.Limiter.TakeN costs: as a rule one
// round trip. The gate answers
//
//   - 429 with Retry-After if the limit is reached,
//   - 400 to 499 if the request has no usable key, or a cost that can never be granted,
//   - 503 if Redis could not answer and the limiter is store.FailClosed, or if the
//     request's context ended,
//   - 500 if the key is wired wrongly or fails.
//
// An admitted request has taken its permits, even if a gate further in refuses it. So a
// flood of requests that are refused further in is still limited here.
//
// To charge several limits of one subject all together or not at all, make them the
// policies of one limiter. For limits of different subjects use [RateLimits].
//
// Only Count and Settle give permits back, and once for each decision. If Redis does not
// confirm that, they go on in the background. A refund that comes after the permits became
// free by themselves changes nothing.
//
// RateLimit panics at wiring on
//
//   - a nil or zero limiter, a nil key, an unknown Headers and a negative Wait,
//   - Count together with Settle, or with a limiter that is limit.Prepaid,
//   - Settle with a limiter that cannot be settled,
//   - a limiter with a limit.WithLease, if neither Settle nor InContext is set.
//
// Nil options are the defaults; options are copied.
func RateLimit(limiter *limit.Limiter, key Key, opts *RateLimitOptions) RateLimitGate {
	if limiter == nil {
		panic("gate.RateLimit: the limiter is nil; make one with limit.New")
	}
	limiter.Name() // panics on one that nothing made
	mustKey("RateLimit", key)
	g := &rateLimit{limiter: limiter, key: key}
	if opts != nil {
		g.opts = *opts
	}
	if g.opts.Headers >= headersEnd {
		panic(fmt.Sprintf("gate.RateLimit: RateLimitOptions.Headers is %d; use one of the constants", g.opts.Headers))
	}
	if g.opts.Wait < 0 {
		panic(fmt.Sprintf("gate.RateLimit: RateLimitOptions.Wait is %v: use a positive duration, or 0 for no wait", g.opts.Wait))
	}
	if g.opts.Count != nil && g.opts.Settle != nil {
		panic("gate.RateLimit: RateLimitOptions has Count and Settle: leave out one of them; a Settle that returns 0 gives everything back")
	}
	if err := g.check(limiter); err != nil {
		panic("gate.RateLimit: " + err.Error())
	}
	g.answers = answers{render: g.opts.Render, onError: g.opts.OnError}
	return g
}

// check refuses a limiter that cannot give back or settle what a single request took, if
// the options need that.
func (g *rateLimit) check(limiter *limit.Limiter) error {
	of := inside.OfLimiter(limiter)
	if g.opts.Settle != nil && of.Unsettled != nil {
		return fmt.Errorf("%w: RateLimitOptions.Settle with limiter %q: %w", ErrWiring, limiter.Name(), of.Unsettled)
	}
	if g.opts.Settle == nil && !g.opts.InContext && of.HasLease {
		return fmt.Errorf("%w: limiter %q has a policy WithLease, and nothing settles its estimates: set RateLimitOptions.Settle, or set InContext and settle in the handler", ErrWiring, limiter.Name())
	}
	if g.opts.Count != nil && of.IsPrepaid {
		return fmt.Errorf("%w: RateLimitOptions.Count gives a request's permits back after the response, but a Prepaid limiter (%q) cannot give back single permits: leave out Count or Prepaid", ErrWiring, limiter.Name())
	}
	return nil
}

// RateLimitGate is a gate that [RateLimit] made. [RateLimits] makes one gate of several,
// and panics on a nil one. A RateLimitGate is safe for concurrent use.
type RateLimitGate interface {
	Gate

	rateLimit() *rateLimit
}

type rateLimit struct {
	limiter *limit.Limiter
	key     Key
	opts    RateLimitOptions
	answers answers

	unsettled unsettled // for a gate with Settle and Wait
	twice     twice
}

func (g *rateLimit) rateLimit() *rateLimit { return g }

func (g *rateLimit) Enter(r Request) Pass {
	if g.skips(r) {
		return Pass{}
	}
	ask, err := g.ask(r)
	if err != nil {
		return g.answers.refuse(r, err)
	}
	g.twice.warn(r)
	d, err := g.take(r, ask)
	switch {
	case errors.Is(err, limit.ErrQueue):
		return g.exceeded(r, limit.Decision{RetryAfter: g.opts.Wait}) // by then all that wait now have left the queue
	case err != nil:
		return g.failed(r, err)
	}
	if d.Degraded {
		g.answers.tellBefore(r, d.Cause, func() {
			if d.Allowed && g.waitsUnsettled() { // no other request waits for this one to settle
				g.unsettled.end(ask.Subject)
			}
		})
	}
	if !d.Allowed {
		return g.exceeded(r, d)
	}
	return g.twice.mark(r, g.admitted(r, ask, d))
}

func (g *rateLimit) skips(r Request) bool { return g.opts.Skip != nil && g.opts.Skip(r) }

// ask returns what a request asks the limiter for.
func (g *rateLimit) ask(r Request) (limit.Ask, error) {
	subject, err := subject(r, g.key)
	if err != nil {
		return limit.Ask{}, err
	}
	limiter, cost, err := g.terms(r)
	if err == nil && g.opts.Clamp {
		cost = min(cost, limiter.MaxCost())
	}
	return limit.Ask{Limiter: limiter, Subject: subject, Cost: cost}, err
}

// failed answers an error of a limiter.
func (g *rateLimit) failed(r Request, err error) Pass {
	if errors.Is(err, limit.ErrCost) {
		return g.answers.refuse(r, Refuse(400, "The cost of the request is not one that can be granted"))
	}
	return g.answers.unavailable(r, err, KindUnavailable)
}

// admitted returns the Pass of a request that the limiter admits.
func (g *rateLimit) admitted(r Request, ask limit.Ask, d limit.Decision) Pass {
	pass := Pass{Header: g.opts.Headers.fields(&d, 0)}
	if g.opts.InContext {
		pass.Context = limit.NewContext(r.Context(), d)
	}
	if g.opts.Settle != nil || ask.Cost > 0 && g.opts.Count != nil {
		a := &admission{gate: g, limiter: ask.Limiter, subject: ask.Subject, cost: ask.Cost, decision: d}
		if pass.Context == nil {
			pass.Context = r.Context()
		}
		pass.Context, a.ending = watch(pass.Context)
		if g.opts.OnError != nil || g.opts.Settle != nil {
			a.asked = snapshotOf(r)
		}
		pass.Leave = a.leave
		if g.opts.Settle != nil {
			pass.Leave = a.settle
		}
	}
	return pass
}

func (g *rateLimit) take(r Request, ask limit.Ask) (limit.Decision, error) {
	switch {
	case g.waitsUnsettled():
		return g.waitUnsettled(r, ask)
	case g.opts.Wait > 0:
		return ask.Limiter.WaitFor(r.Context(), ask.Subject, ask.Cost, g.opts.Wait)
	}
	return ask.Limiter.TakeN(r.Context(), ask.Subject, ask.Cost)
}

// terms returns the limiter that decides about a request, and what the request costs
// there.
func (g *rateLimit) terms(r Request) (limiter *limit.Limiter, cost int64, err error) {
	limiter, cost = g.limiter, 1
	if g.opts.Policies != nil {
		if limiter, err = g.planned(r); err != nil {
			return nil, 0, err
		}
	}
	if g.opts.Cost != nil {
		if cost, err = g.opts.Cost(r); err != nil {
			return nil, 0, err
		}
	}
	return limiter, cost, nil
}

// planned returns the limiter with the policies of the request's plan.
func (g *rateLimit) planned(r Request) (*limit.Limiter, error) {
	policies, err := g.opts.Policies(r)
	if err != nil || len(policies) == 0 {
		return g.limiter, err
	}
	with, err := g.limiter.With(policies...)
	if err != nil {
		return nil, fmt.Errorf("%w: RateLimitOptions.Policies: %w", ErrWiring, err)
	}
	return with, g.check(with)
}

func (g *rateLimit) exceeded(r Request, d limit.Decision) Pass {
	return g.answers.deny(r, Denial{
		Kind:       KindLimited,
		RetryAfter: d.RetryAfter,
		Header:     g.opts.Headers.fields(&d, 2),
		Decision:   &d,
	})
}
