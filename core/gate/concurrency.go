package gate

import (
	"fmt"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
)

// ConcurrencyOptions are the options of [Concurrency]. Their functions must be safe for
// concurrent use; their panics propagate to the request.
type ConcurrencyOptions struct {
	// Skip lets a request pass uncounted, such as a health check.
	Skip func(Request) bool
	// Headers are the fields to send: [HeadersIETF], [HeadersAll], which is the same
	// here, or [HeadersNone]. They say how many requests may be in flight, which includes
	// this one, and how many more could start when this one was admitted. Concurrency
	// panics on the older fields: these have no unit, so a client would take them for the
	// fields of a rate limit.
	Headers Headers
	// Render makes the answer to a request that may not run, as Render of
	// [RateLimitOptions] does.
	Render func(Denial) Reply
	// OnError is told of each request that is answered with a 500 or 503, and of each
	// decision that was made without Redis, as OnError of [RateLimitOptions] is.
	OnError func(Request, error)
}

// Concurrency returns a gate that lets as many requests of a subject run at once as c
// allows, in all processes together. It answers
//
//   - 429 with Retry-After 1 if that many requests are in flight,
//   - 400 to 499 if the request has no usable key,
//   - 503 if Redis could not answer and c is store.FailClosed, or if the request's
//     context ended,
//   - 500 if the key is wired wrongly or fails.
//
// A request is in flight until its handler has returned or panicked, however slow the
// handler is and whether or not the client still listens. On Fiber and Hertz it is also in
// flight while the server writes a body that is a stream, and while the function of Hijack
// runs. Its slot is free before the response has ended, unless all of it was flushed before.
//
// What a handler leaves behind is not counted: a goroutine, and a connection that was
// taken over and lives on.
//
// Concurrency costs what inflight.Limiter.Try costs: as a rule a round trip before the
// handler and one after it, and another for each third of the lease that the handler takes.
//
// Concurrency panics at wiring on a nil or zero c, on a nil key, and on Headers that have
// no unit. Nil options are the defaults; options are copied.
func Concurrency(c *inflight.Limiter, key Key, opts *ConcurrencyOptions) Gate {
	if c == nil {
		panic("gate.Concurrency: the limit is nil; make one with inflight.New")
	}
	c.Name() // panics on one that nothing made
	mustKey("Concurrency", key)
	g := &concurrency{limit: c, key: key}
	if opts != nil {
		if opts.Headers != HeadersIETF && opts.Headers != HeadersAll && opts.Headers != HeadersNone {
			panic(fmt.Sprintf("gate.Concurrency: ConcurrencyOptions.Headers is %d; use HeadersIETF or HeadersAll, which can say that the unit is requests in flight, or HeadersNone", opts.Headers))
		}
		g.skip, g.headers = opts.Skip, opts.Headers
		g.answers = answers{render: opts.Render, onError: opts.OnError}
	}
	return g
}

type concurrency struct {
	limit   *inflight.Limiter
	key     Key
	skip    func(Request) bool
	headers Headers
	answers answers
	twice   twice
}

func (g *concurrency) Enter(r Request) Pass {
	if g.skip != nil && g.skip(r) {
		return Pass{}
	}
	subject, err := subject(r, g.key)
	if err != nil {
		return g.answers.refuse(r, err)
	}
	g.twice.warn(r)
	ctx := r.Context()
	slot, err := g.limit.Try(ctx, subject)
	if err != nil {
		return g.answers.unavailable(r, err, KindUnavailable)
	}
	if slot.Degraded {
		g.answers.tellBefore(r, slot.Cause, func() { _ = slot.Release(ctx) })
	}
	fields := g.headers.inFlight(slot)
	if !slot.Allowed {
		return g.answers.deny(r, Denial{
			Kind: KindFull, RetryAfter: slot.RetryAfter, Header: fields,
			Decision: &limit.Decision{
				Policy: slot.Policy, Limit: slot.Limit, RetryAfter: slot.RetryAfter, Degraded: slot.Degraded, Cause: slot.Cause,
			},
		})
	}
	// If Release cannot finish immediately, it goes on in the background.
	return g.twice.mark(r, Pass{Header: fields, Leave: func(*Reply) { _ = slot.Release(ctx) }})
}
