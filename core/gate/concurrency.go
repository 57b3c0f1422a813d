package gate

import (
	"fmt"

	"github.com/neap-go/neap/core/limit"
)

// ConcurrencyOptions are the options of [Concurrency]. Their functions must be
// safe for concurrent use; their panics propagate to the request.
type ConcurrencyOptions struct {
	// Skip lets a request pass uncounted, such as a health check.
	Skip func(Request) bool
	// Headers are the fields to send, [HeadersIETF] or [HeadersNone]. They say how
	// many requests may be in flight, this one among them, and how many more when
	// this one was let in. The older fields have no unit and would be taken for
	// those of a rate limit, so Concurrency panics on them.
	Headers Headers
	// Render makes the answer to a request that may not run, as that of
	// [RateLimitOptions] does.
	Render func(Denial) Reply
	// OnError hears of what is answered with a 500 or 503, and of what was
	// decided without Redis, as that of [RateLimitOptions] does.
	OnError func(Request, error)
}

// titleFull has no problem type beside it: those registered are about quotas.
const titleFull = "Too many requests are in flight"

// Concurrency is a gate that lets as many requests of a subject run at once,
// in all processes together, as c allows. It answers
//
//   - 429 with Retry-After 1 when as many are in flight,
//   - 400 to 499 when the request cannot be keyed,
//   - 503 when Redis could not answer and c is limit.FailClosed, or when the
//     request's context ended,
//   - 500 when the key is wrongly wired or fails.
//
// A request is in flight until its handler has returned or panicked, however
// slow it is and whether or not its client still listens; its slot is free
// before the response has ended. What a handler leaves behind is not counted: a
// connection that was taken over and lives on, and with Fiber a response that
// is streamed, since its stream runs after the handler has returned.
//
// It panics at wiring on a nil or zero c, a nil key and Headers that have no unit; nil
// options are the defaults, and options are copied.
func Concurrency(c *limit.Concurrency, key Key, opts *ConcurrencyOptions) Gate {
	if c == nil {
		panic("gate.Concurrency: the limit is nil; make one with limit.NewConcurrency")
	}
	c.Name() // panics on one that nothing made
	mustKey("Concurrency", key)
	g := &concurrency{limit: c, key: key}
	if opts != nil {
		if opts.Headers != HeadersIETF && opts.Headers != HeadersNone {
			panic(fmt.Sprintf("gate.Concurrency: ConcurrencyOptions.Headers is %d; only HeadersIETF can say that the unit is requests in flight, and HeadersNone sends none", opts.Headers))
		}
		g.skip, g.headers = opts.Skip, opts.Headers
		g.answers = answers{render: opts.Render, onError: opts.OnError}
	}
	return g
}

type concurrency struct {
	limit   *limit.Concurrency
	key     Key
	skip    func(Request) bool
	headers Headers
	answers answers
}

func (g *concurrency) Enter(r Request) Pass {
	if g.skip != nil && g.skip(r) {
		return Pass{}
	}
	subject, err := subject(r, g.key)
	if err != nil {
		return g.answers.refuse(r, err)
	}
	ctx := r.Context()
	slot, err := g.limit.Try(ctx, subject)
	if err != nil {
		return g.answers.unavailable(r, err)
	}
	if slot.Degraded {
		g.tell(r, slot)
	}
	fields := g.headers.inFlight(&slot.Decision)
	if !slot.Allowed {
		return g.answers.deny(r, Denial{
			Status: 429, Title: titleFull, RetryAfter: slot.RetryAfter, Header: fields, Decision: &slot.Decision,
		})
	}
	// What Release cannot do at once goes on in the background.
	return Pass{Header: fields, Leave: func(*Reply) { _ = slot.Release(ctx) }}
}

// tell gives the slot back when the hook panics: nobody will leave.
func (g *concurrency) tell(r Request, slot *limit.Slot) {
	told := false
	defer func() {
		if !told {
			_ = slot.Release(r.Context())
		}
	}()
	g.answers.tell(r, slot.Cause)
	told = true
}
