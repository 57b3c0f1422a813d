package gate

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// RateLimitOptions are the options of [RateLimit]. Their functions must be safe for
// concurrent use; their panics propagate to the request.
type RateLimitOptions struct {
	// Skip lets a request pass uncounted, such as a health check.
	Skip func(Request) bool
	// Cost is how many permits a request takes; nil is 1 each. A cost below 0,
	// or above what the limiter can ever grant, is refused with a 400, since
	// waiting would not help. An error is answered like that of a Key.
	Cost func(Request) (int64, error)
	// Choose picks another limiter for a request, by its tenant or plan: one
	// that limit.Limiter.With made once. Nil is the gate's own. An error is
	// answered like that of a Key.
	Choose func(Request) (*limit.Limiter, error)
	// Policies are the policies of a request, with the numbers of its plan: from a
	// database or a claim of a token. They take the place of the limiter's own, as
	// limit.Limiter.With says; if there are none, its own stay. They are made ready once for equal
	// policies, of the last 16,384 that differ, so that no limiter is made by hand. An
	// error, also of numbers that no policy can have, is answered like that of a Key:
	// limit those whose plan is not known by a plan of their own, and return no error.
	Policies func(Request) ([]limit.Policy, error)
	// Wait is how long a request may wait for its permits before it is admitted, as
	// [limit.Limiter.WaitFor] says: in the order in which the requests of a subject came to
	// this process, and denied at once if the permits cannot be there in time. Retry-After is then
	// that of its cost, behind those that wait. With Settle a request is denied at once only if no
	// other of its subject runs in this process: those that run may settle to less, and then the
	// first in the queue asks again. The limiter's MaxWaiting is the most that wait. A client that
	// goes away leaves the queue, but on Fiber, which does not tell. Give the server a
	// WriteTimeout that is longer. 0 waits for none; a negative one panics at wiring.
	Wait time.Duration
	// Count says by its status which answer counts, such as [OnlyFailures]; nil
	// counts every admitted request. What does not count is given back when the
	// handler has returned, before the response ends unless the handler flushed
	// all of it, so that requests in flight count until their outcome is known.
	// It costs a second round trip, which the client's going away does not cut
	// short, and a copy of the request, but on Fiber.
	//
	// An outcome that the gate does not see counts, without asking Count: a
	// panic, an answer left to middleware outside, a connection taken over
	// before a status was sent. So does a refusal of a gate further in
	// ([Reply.Refused]), whatever its status. So does an empty 200 when the request's context
	// has ended, or the one that a gate of this package further in has made: because
	// the client hung up, a deadline passed or a lock was lost. Frameworks make that
	// of a handler that gives up. Any other answer means what it says, though the
	// client may be gone: a 200 with a body or one that was flushed, a 204. So does an
	// empty 200 of a handler that returns for another reason, such as a body that it
	// could not read, or a deadline that middleware between it and the gate has set:
	// let the handler write a status, and mount such middleware outside. Mount what
	// compresses answers outside too: it writes a footer for a handler that gives up,
	// which looks like a body.
	Count func(status int) bool
	// Settle returns what an admitted request cost in the end, such as the tokens that a model
	// used: what it took was an estimate. When the handler has returned, the decision is settled to
	// that, as [limit.Decision.Settle] says. Settle is given the request, with no more than its
	// context, method, host, path, query, route and peer, and the answer without its body. The answer
	// is nil if the gate does not see it, after a panic say: httputil.ReverseProxy panics when the
	// client goes away or the upstream breaks off, so return what was delivered, and never 0 for a
	// nil. A number below 0 leaves the estimate. If a gate further in refuses the request
	// ([Reply.Refused]), nothing was used: return 0. OnError hears of an error, unless the handler has settled
	// the decision by itself: with InContext it finds the decision. Settle costs a second round trip
	// and a copy of the request.
	Settle func(Request, *Reply) int64
	// Clamp lowers a cost to what the limiter can grant at most, in the place of a
	// 400: for estimates that may be too high.
	Clamp bool
	// Headers are the fields to send; the zero value is [HeadersIETF]. Their
	// figures are those of the moment when the request was let in: nothing was
	// given back then.
	Headers Headers
	// InContext lets the handler find the decision, with [limit.FromContext] in the
	// request's context. Of several gates it is the innermost one's that says so. It
	// costs a copy of the request, but on Fiber.
	InContext bool
	// Render makes the answer to a request that may not run; nil is
	// application/problem+json. A Status of 0 keeps the denial's, and the
	// denial's header fields are added unless the Reply has its own.
	Render func(Denial) Reply
	// OnError hears of what is answered with a 500 or 503, and of what was
	// decided without Redis: errors of a Key, Cost or Choose that refuse
	// nothing, wrong wiring ([ErrWiring]), a Redis that does not answer in
	// time, once a request. A client that went away is not told of.
	// It also hears of permits that could not be given back. The handler has run
	// then, and the Request has no more than its context, method, host, path,
	// query, route and peer.
	// Such an error may name keys and is for operators. Nil hears nothing.
	OnError func(Request, error)
}

// RateLimit is a gate that admits what the limiter admits for the subject that
// key makes of the request. It answers
//
//   - 429 with Retry-After when the limit is reached,
//   - 400 to 499 when the request cannot be keyed or its cost never be granted,
//   - 503 when Redis could not answer and the limiter is limit.FailClosed, or
//     when the request's context ended,
//   - 500 when the key is wrongly wired or fails.
//
// An admitted request has taken its permits, whatever a gate further in decides:
// a flood that is refused inside is limited outside. Where several limits of one
// subject should be charged all together or not at all, make them the policies
// of one limiter; for several limits of different subjects, use [RateLimits]. Only Count and Settle
// give permits back, each decision's at most once. A refund that fails is not repeated:
// OnError is told, and the permits stay taken. One that comes when the permits are free
// again by themselves changes nothing.
//
// It panics at wiring on a nil or zero limiter, a nil key, an unknown Headers, a negative Wait, Choose
// beside Policies, Count beside Settle, Count beside a limiter that is limit.Prepaid, Settle beside
// one that cannot be settled, and neither Settle nor InContext beside one with a limit.WithLease; nil options are the defaults, and options are copied.
func RateLimit(limiter *limit.Limiter, key Key, opts *RateLimitOptions) Gate {
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
	if g.opts.Choose != nil && g.opts.Policies != nil {
		panic("gate.RateLimit: RateLimitOptions has Choose and Policies: leave out one of them")
	}
	if g.opts.Wait < 0 {
		panic(fmt.Sprintf("gate.RateLimit: RateLimitOptions.Wait is %v: use a positive duration, or 0 to wait for none", g.opts.Wait))
	}
	if g.opts.Count != nil && g.opts.Settle != nil {
		panic("gate.RateLimit: RateLimitOptions has Count and Settle: leave out one of them; a Settle that returns 0 gives all back")
	}
	if err := g.check(limiter); err != nil {
		panic("gate.RateLimit: " + err.Error())
	}
	g.answers = answers{render: g.opts.Render, onError: g.opts.OnError}
	return g
}

// check refuses what cannot be given back one by one, and what cannot be settled.
func (g *rateLimit) check(limiter *limit.Limiter) error {
	if g.opts.Settle != nil {
		if err := limiter.CanSettle(); err != nil {
			return fmt.Errorf("%w: RateLimitOptions.Settle of limiter %q: %w", ErrWiring, limiter.Name(), err)
		}
	}
	if g.opts.Settle == nil && !g.opts.InContext && limiter.HasLease() {
		return fmt.Errorf("%w: limiter %q has a policy WithLease, and nothing settles what it takes: set RateLimitOptions.Settle, or InContext and settle in the handler", ErrWiring, limiter.Name())
	}
	if g.opts.Count != nil && limiter.IsPrepaid() {
		return fmt.Errorf("%w: RateLimitOptions.Count gives a request's permit back after the response, and a Prepaid limiter (%q) keeps none for each request: leave out one of them", ErrWiring, limiter.Name())
	}
	return nil
}

type rateLimit struct {
	limiter *limit.Limiter
	key     Key
	opts    RateLimitOptions
	answers answers

	unsettled unsettled // of a gate with Settle and Wait
}

func (g *rateLimit) Enter(r Request) Pass {
	if g.skips(r) {
		return Pass{}
	}
	ask, err := g.ask(r)
	if err != nil {
		return g.answers.refuse(r, err)
	}
	d, err := g.take(r, ask)
	switch {
	case errors.Is(err, limit.ErrQueue):
		return g.exceeded(r, limit.Decision{RetryAfter: g.opts.Wait}) // by then all of them have left
	case err != nil:
		return g.failed(r, err)
	}
	if d.Degraded {
		g.tellDegraded(r, ask, d)
	}
	if !d.Allowed {
		return g.exceeded(r, d)
	}
	return g.admitted(r, ask, d)
}

// tellDegraded calls OnError. If that panics, the request does not run, and no other waits for it to settle.
func (g *rateLimit) tellDegraded(r Request, ask limit.Ask, d limit.Decision) {
	panics := true
	defer func() {
		if panics && d.Allowed && g.waitsUnsettled() {
			g.unsettled.end(ask.Subject)
		}
	}()
	g.answers.tell(r, d.Cause)
	panics = false
}

func (g *rateLimit) skips(r Request) bool { return g.opts.Skip != nil && g.opts.Skip(r) }

// ask is what a request asks the limiter for.
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
	return g.answers.unavailable(r, err)
}

// admitted lets a request run that the limiter admits.
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

// terms are the limiter that a request is under and what it costs there.
func (g *rateLimit) terms(r Request) (limiter *limit.Limiter, cost int64, err error) {
	limiter, cost = g.limiter, 1
	if g.opts.Choose != nil {
		chosen, err := g.opts.Choose(r)
		if err != nil {
			return nil, 0, err
		}
		if chosen != nil {
			if err := g.check(chosen); err != nil {
				return nil, 0, err
			}
			limiter = chosen
		}
	}
	if g.opts.Policies != nil {
		if limiter, err = g.planned(r, limiter); err != nil {
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

// planned is the limiter with the policies of the request's plan.
func (g *rateLimit) planned(r Request, limiter *limit.Limiter) (*limit.Limiter, error) {
	policies, err := g.opts.Policies(r)
	if err != nil || len(policies) == 0 {
		return limiter, err
	}
	with, err := limiter.With(policies...)
	if err != nil {
		return nil, fmt.Errorf("%w: RateLimitOptions.Policies: %w", ErrWiring, err)
	}
	return with, g.check(with)
}

func (g *rateLimit) exceeded(r Request, d limit.Decision) Pass {
	return g.answers.deny(r, Denial{
		Status: 429, Type: typeQuota, Title: titleQuota,
		RetryAfter: d.RetryAfter,
		Header:     g.opts.Headers.fields(&d, 2),
		Decision:   &d,
	})
}
